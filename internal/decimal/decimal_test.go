package decimal

import (
	"bytes"
	"encoding/hex"
	"math/big"
	"testing"
)

func of(n int64, scale int32) Decimal { return Decimal{big.NewInt(n), scale} }

// TestBytes: the forms are those of Bytes.toBytes(new BigDecimal(text)) in Java.
func TestBytes(t *testing.T) {
	for _, tt := range []struct {
		d    Decimal
		hex  string
		text string
	}{
		{Decimal{}, "0000000000", "0"},
		{of(0, 2), "0000000200", "0.00"},
		{of(1, 0), "0000000001", "1"},
		{of(127, 2), "000000027f", "1.27"},
		{of(128, 2), "000000020080", "1.28"},
		{of(-1, 1), "00000001ff", "-0.1"},
		{of(-128, 2), "0000000280", "-1.28"},
		{of(-129, 2), "00000002ff7f", "-1.29"},
		{of(256, -3), "fffffffd0100", "256000"},
		{of(5, 4), "0000000405", "0.0005"},
	} {
		b := tt.d.Append(nil)
		if got := hex.EncodeToString(b); got != tt.hex {
			t.Errorf("%s: bytes %s, want %s", tt.text, got, tt.hex)
		}
		if got := tt.d.String(); got != tt.text {
			t.Errorf("text %s, want %s", got, tt.text)
		}
		back, err := Parse(b)
		if err != nil || Cmp(back, tt.d) != 0 || back.Scale != tt.d.Scale {
			t.Errorf("%s read back: %v, %v", tt.text, back, err)
		}
	}
	for _, b := range []string{"", "00000000", "0000271101", "ffffd8ef01", "7fffffff01"} {
		in, _ := hex.DecodeString(b)
		if d, err := Parse(in); err == nil {
			t.Errorf("%s was read as %v", b, d)
		}
	}
}

func TestArithmetic(t *testing.T) {
	for _, tt := range []struct{ name, got, want string }{
		{"add", Add(of(150, 2), of(5, 1)).String(), "2.00"},
		{"add a negative", Add(of(1, 0), of(-101, 2)).String(), "-0.01"},
		{"mul", Mul(of(150, 2), of(-15, 1)).String(), "-2.250"},
		{"half to even, down", of(125, 2).Rescale(1).String(), "1.2"},
		{"half to even, up", of(135, 2).Rescale(1).String(), "1.4"},
		{"half to even, negative", of(-125, 2).Rescale(1).String(), "-1.2"},
		{"more than half", of(-1251, 3).Rescale(1).String(), "-1.3"},
		{"wider", of(1, 0).Rescale(2).String(), "1.00"},
	} {
		if tt.got != tt.want {
			t.Errorf("%s: %s, want %s", tt.name, tt.got, tt.want)
		}
	}
	if Cmp(of(10, 1), of(1, 0)) != 0 || Cmp(of(-1, 3), Decimal{}) >= 0 || Cmp(of(2, -1), of(3, 0)) <= 0 {
		t.Error("wrong order")
	}
	if f := of(-225, 2).Float64(); f != -2.25 {
		t.Errorf("float %v", f)
	}
	if f := of(2, -1).Float64(); f != 20 {
		t.Errorf("float %v", f)
	}
}

func FuzzParse(f *testing.F) {
	for _, d := range []Decimal{of(0, 0), of(-1, 2), of(1<<40, -5), of(-(1 << 62), MaxScale)} {
		f.Add(d.Append(nil))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		d, err := Parse(b)
		if err != nil {
			return
		}
		again, err := Parse(d.Append(nil))
		if err != nil || again.Scale != d.Scale || again.Unscaled.Cmp(d.Unscaled) != 0 {
			t.Fatalf("%x: %v, then %v, %v", b, d, again, err)
		}
		if len(d.Append(nil)) > len(b) {
			t.Fatalf("%x grew to %x", b, d.Append(nil))
		}
		_ = d.Rescale(2).String()
		if bytes.Equal(b, nil) {
			t.Fatal("nothing was read")
		}
	})
}
