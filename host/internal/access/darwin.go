package access

type seatbelt struct{}

func (m *Model) askDarwin(target string, write bool) Verdict { return Verdict{} }
