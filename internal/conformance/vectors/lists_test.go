package vectors_test

// asJava are recorded cases with steps that our client does not send as HBase's
// does.
var asJava = map[string]string{
	"admin/alter_table_bad":           "our client refuses a table without families by itself",
	"admin/split_start":               "our client refuses a split row outside the region by itself",
	"errors/family_none":              "our client refuses a table without families by itself",
	"errors/attr_bad_versions":        "our client refuses such numbers by itself",
	"errors/attr_zero_versions":       "our client refuses VERSIONS 0, with which nothing can be read",
	"batch/b_rowmutations_then_get":   "our client sends what is one row's in the order given",
	"batch/b_cam_then_get":            "our client sends what is one row's in the order given",
	"batch/b_too_big":                 "our client sends a large cell in a request of its own, so that it fails alone",
	"mutations/cell-limit-in-batch":   "our client sends a large cell in a request of its own, so that it fails alone",
	"scans/limit-zero":                "our client refuses a negative limit by itself",
	"scans/store-limit-zero":          "0 is our client's default, no limit",
	"scans/size-partial-batch":        "our client has either batches or partial results",
	"versions/scan-max-versions-zero": "0 is our client's default, and a negative number is refused by itself",
}

// differs are recorded cases that the embedded cluster answers otherwise, or
// our client; docs/embedded-differences.md says the same for users.
var differs = map[string]string{}
