package rpc

import "bytes"

const sniffLength = 64

// foreign tells from the first bytes of a stream that it is no HBase server's,
// and what it seems to be; "" = could be HBase. An answer starts with its
// length, at most some hundred megabytes, so its first byte is small; the only
// short answers before any call are exceptions below a megabyte.
func foreign(b []byte) string {
	starts := func(s string) bool { return bytes.HasPrefix(b, []byte(s)) }
	switch {
	case starts("HTTP/"):
		return "an HTTP server"
	case starts("<"):
		return "HTML or XML"
	case starts("SSH-"):
		return "an SSH server"
	case starts("220 "), starts("220-"):
		return "a mail or FTP server"
	case starts("+OK"), starts("-ERR"), starts("-DENIED"), starts("* OK"):
		return "a Redis or mail server"
	case starts("RFB "):
		return "a VNC server"
	case len(b) >= 3 && b[0] == 0x15 && b[1] == 0x03 && b[2] <= 4:
		return "a TLS alert (the server wants TLS)"
	case len(b) >= 3 && b[0] == 0x16 && b[1] == 0x03 && b[2] <= 4:
		return "a TLS handshake"
	case len(b) >= 9 && b[0] == 0 && b[3] == 4 && string(b[4:9]) == "\x00\x00\x00\x00\x00":
		// A SETTINGS frame; for us, an answer with an empty header.
		return "an HTTP/2 server"
	case len(b) >= 5 && b[0] > 0x10 && string(b[1:4]) == "\x00\x00\x00" && b[4] == 0x0a:
		return "a MySQL server"
	case len(b) >= 4 && printable(b[:4]):
		return "text"
	}
	return ""
}

func printable(b []byte) bool {
	for _, c := range b {
		if (c < ' ' || c > '~') && c != '\n' && c != '\r' && c != '\t' {
			return false
		}
	}
	return true
}
