package srt

// Programs are what srt itself starts and finds on PATH, on an operating
// system. It looks for the others by which.
func Programs(goos string) []string {
	if goos != "linux" {
		return nil
	}
	return []string{"bwrap", "socat", "rg", "which"}
}
