package sdk

// Protect makes each path exist before a session and denies writes to it: the
// sandbox can hold only what is there. It appends to Ensure and to DenyWrite.
func (c *Contribution) Protect(paths ...Path) {
	for _, p := range paths {
		c.Ensure = append(c.Ensure, p)
		c.DenyWrite = append(c.DenyWrite, p.Path)
	}
}

// Below returns paths of one kind and content in the directory dir, by name.
func Below(dir string, kind Kind, content string, names ...string) []Path {
	paths := make([]Path, len(names))
	for i, name := range names {
		paths[i] = Path{Path: dir + "/" + name, Kind: kind, Content: []byte(content)}
	}
	return paths
}
