package wire

import "github.com/holdfast-hbase/holdfast/internal/pb"

// The HBase release whose behaviour we announce. Servers unlock features by
// it: results in cell blocks, ScannerResetException, MultiActionResultTooLarge
// and RequestTooBigException all need at least 1.4.
const (
	versionText  = "2.6.4"
	versionMajor = 2
	versionMinor = 6
)

// Version is the VersionInfo of our connection headers. All six texts are
// required on the wire.
func Version() *pb.VersionInfo {
	text := func(s string) *string { return &s }
	major, minor := uint32(versionMajor), uint32(versionMinor)
	return &pb.VersionInfo{
		Version:      text(versionText),
		Url:          text("https://github.com/holdfast-hbase/holdfast"),
		Revision:     text("holdfast"),
		User:         text("holdfast"),
		Date:         text(""),
		SrcChecksum:  text(""),
		VersionMajor: &major,
		VersionMinor: &minor,
	}
}
