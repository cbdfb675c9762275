package vectors

// AsJava are recorded cases with steps that our client does not send as HBase's
// does, with the reason: see [Options.AsJava].
func AsJava() map[string]string {
	const (
		order = "our client sends what is one row's in the order given"
		large = "our client sends a large cell in a request of its own, so that it fails alone"
		zero  = "0 is our client's default"
	)
	return map[string]string{
		"admin/alter_table_bad":           "our client refuses a table without families by itself",
		"admin/split_start":               "our client refuses a split row outside the region by itself",
		"errors/family_none":              "our client refuses a table without families by itself",
		"errors/attr_bad_versions":        "our client refuses such numbers by itself",
		"errors/attr_zero_versions":       "our client refuses VERSIONS 0, with which nothing can be read",
		"batch/b_rowmutations_then_get":   order,
		"batch/b_cam_then_get":            order,
		"batch/b_put_then_cam":            order,
		"batch/b_too_big":                 large,
		"mutations/cell-limit-in-batch":   large,
		"scans/limit-zero":                "our client refuses a negative limit by itself",
		"scans/store-limit-zero":          zero,
		"scans/size-partial-batch":        "our client has either batches or partial results",
		"versions/scan-max-versions-zero": zero + ", and it refuses a negative number by itself",
	}
}

// Different are recorded cases that come out otherwise with our client on the
// embedded cluster, with the reason; docs/design/embedded.md tells users the
// same.
func Different() map[string]string {
	const (
		files = "the embedded cluster has no store files of HBase's kind to count"
		all   = "a major compaction of the embedded cluster takes what is in memory as well"
	)
	m := DifferentClient()
	m["filters-value/regex-joni-lookaround"] = "look-around, back references and possessive quantifiers are refused"
	m["filters-row/rowfilter-component"] = "HBase compares what happens to lie behind a short row's key in memory; here that is an error"
	m["versions/minor-all-files"] = files
	m["versions/major-memstore-untouched"] = all
	return m
}

// DifferentClient are recorded cases with an outcome that is our client's doing,
// on any cluster.
func DifferentClient() map[string]string {
	return map[string]string{
		"errors/table_disabled": "a batch on a disabled table says so, as single operations do, instead of NotServingRegionException",
	}
}

// DifferentRules are cases of testdata/rules that the embedded cluster answers
// otherwise, with the reason.
func DifferentRules() map[string]string {
	return map[string]string{
		"markers/markers_v2_true_nvb_files": "a major compaction under NEW_VERSION_BEHAVIOR with KEEP_DELETED_CELLS takes visible versions in HBase; here it changes no such answer",
	}
}
