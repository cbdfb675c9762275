package report

import _ "embed"

// Schema is the JSON Schema of what JSON prints.
//
//go:embed schema.json
var Schema []byte
