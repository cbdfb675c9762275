package rpc

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"math/big"
	"net"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/holdfast-hbase/holdfast/internal/pb"
	"github.com/holdfast-hbase/holdfast/internal/wire"
)

type tlsPair struct{ server, client *tls.Config }

var makeTLS = sync.OnceValues(func() (tlsPair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tlsPair{}, err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "rs"}, DNSNames: []string{"rs"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Unix(0, 0), NotAfter: time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		return tlsPair{}, err
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return tlsPair{}, err
	}
	pool := x509.NewCertPool()
	pool.AddCert(cert)
	return tlsPair{
		server: &tls.Config{Certificates: []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}}},
		client: &tls.Config{RootCAs: pool},
	}, nil
})

func testTLS(t testing.TB) tlsPair {
	t.Helper()
	p, err := makeTLS()
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func TestTLS(t *testing.T) {
	p := testTLS(t)
	l, err := tls.Listen("tcp", "127.0.0.1:0", p.server)
	if err != nil {
		t.Fatal(err)
	}
	serve(t, l, echo)
	cfg := config(l.Addr().String())
	cfg.TLS = p.client
	c := dial(t, cfg)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 50 {
				if v, err := get(within(t, 10*time.Second), c, "r"); v != "r" || err != nil {
					t.Errorf("%q, %v", v, err)
					return
				}
			}
		})
	}
	wg.Wait()
	c.Close()

	// A plain client sees a TLS server for what it is.
	cfg.TLS = nil
	c = dial(t, cfg)
	var nh *NotHBaseError
	var ce *ConnError
	if err := c.Do(within(t, 10*time.Second), &Call{Method: "Get", Param: getRequest("r")}); !errors.As(err, &nh) && !errors.As(err, &ce) {
		t.Errorf("plain client: %v", err)
	}
	c.Close()

	cfg.TLS = &tls.Config{}
	_, err = Dial(context.Background(), cfg)
	var de *DialError
	if !errors.As(err, &de) || de.Phase != PhaseTLS {
		t.Errorf("unknown authority: %v", err)
	}
}

func TestDialErrors(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	l.Close()
	_, err = Dial(within(t, 5*time.Second), config(addr))
	var de *DialError
	if !errors.As(err, &de) || de.Phase != PhaseConnect || de.Addr != addr || !errors.Is(err, syscall.ECONNREFUSED) {
		t.Errorf("refused: %v", err)
	}
	_, err = Dial(within(t, 5*time.Second), config("no-such-host.invalid:1"))
	if !errors.As(err, &de) || de.Phase != PhaseConnect {
		t.Errorf("unknown host: %v", err)
	}
	why := errors.New("why")
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(why)
	if _, err = Dial(ctx, config(addr)); !errors.Is(err, why) {
		t.Errorf("cancelled: %v", err)
	}
}

// echoAuth exchanges one byte and wraps the stream, as SASL does.
type echoAuth struct{}

func (echoAuth) Code() wire.AuthCode { return wire.AuthDigest }
func (echoAuth) Authenticate(_ context.Context, conn net.Conn) (net.Conn, error) {
	var b [1]byte
	if _, err := conn.Write([]byte{42}); err != nil {
		return nil, err
	}
	if _, err := conn.Read(b[:]); err != nil {
		return nil, err
	}
	if b[0] != 43 {
		return nil, errors.New("wrong answer")
	}
	return struct{ net.Conn }{conn}, nil
}
func (echoAuth) User(string, string) *pb.UserInformation { return nil }

func TestAuthenticator(t *testing.T) {
	for _, answer := range []byte{43, 44} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			conn, err := l.Accept()
			if err != nil {
				t.Error(err)
				return
			}
			defer conn.Close()
			var b [7]byte
			for n := 0; n < 7; {
				m, err := conn.Read(b[n:])
				if err != nil {
					t.Error(err)
					return
				}
				n += m
			}
			if string(b[:]) != "HBas\x00\x52\x2a" {
				t.Errorf("preamble %q", b)
			}
			if _, err := conn.Write([]byte{answer}); err != nil || answer != 43 {
				return
			}
			h, err := wire.ReadConnectionHeader(conn)
			if err != nil || h.UserInfo != nil {
				t.Errorf("header %v, %v", h, err)
			}
			s, _ := wire.NewCompressor(wire.NoCompression, 0)
			sess := &session{t: t, conn: conn, header: h, comp: s}
			sess.r = newReader(conn)
			_ = echo(sess)
		})
		cfg := config(l.Addr().String())
		cfg.Auth = echoAuth{}
		c, err := Dial(within(t, 5*time.Second), cfg)
		if answer == 43 {
			if err != nil {
				t.Fatal(err)
			}
			if v, err := get(within(t, 5*time.Second), c, "r"); v != "r" || err != nil {
				t.Errorf("%q, %v", v, err)
			}
			c.Close()
		} else {
			var de *DialError
			if !errors.As(err, &de) || de.Phase != PhaseAuth {
				t.Errorf("refused: %v", err)
			}
		}
		l.Close()
		wg.Wait()
	}
}
