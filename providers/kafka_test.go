package providers_test

import (
	"context"
	"crypto/rand"
	"errors"
	"net/url"
	"path/filepath"
	"strings"
	"testing"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/providers"
	"github.com/backstage-go/backstage/providers/kafka"
)

func TestOpenKafkaByAddress(t *testing.T) {
	t.Parallel()
	at := "kafka://" + brokers.SharedKafka(t)
	held := "lend=" + url.QueryEscape("embedded:"+filepath.Join(t.TempDir(), "held.db"))
	prefix := strings.ToLower(rand.Text()[:10])
	for address, delays := range map[string]bool{
		at: false,
		at + "?prefix=" + prefix + "&group=g&partitions=1&replication=1&max_record=100000&passive=true&broker=localhost:1": false,
		at + "/?" + held: true,
	} {
		p, err := providers.Open(t.Context(), address)
		if err != nil {
			t.Errorf("Open(%q): %v", address, err)
			continue
		}
		if p.Name != "kafka" || (p.Delays != nil) != delays || (p.Claims != nil) != delays {
			t.Errorf("Open(%q) opens %q, with delays and claims: %t, %t; want kafka, %t", address, p.Name, p.Delays != nil, p.Claims != nil, delays)
		}
		if err := p.Health(t.Context()); err != nil {
			t.Errorf("Open(%q): health: %v", address, err)
		}
		if err := p.Close(context.Background()); err != nil {
			t.Errorf("Open(%q): close: %v", address, err)
		}
	}
}

func TestAKafkaAddressThatIsNotUnderstoodIsAnError(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"kafka:":                                    "no address of a broker",
		"kafka://h:1/shop":                          "without a path",
		"kafka://h:1?passive=yes":                   "false or true",
		"kafka://h:1?partitions=x":                  "a number, 0 or more",
		"kafka://h:1?prefx=shop":                    `unknown setting "prefx"`,
		"kafka://h:1?broker=a/b":                    "HOST:PORT",
		"kafka://h:1?cacertfile=x":                  "true, where there are files",
		"kafka://h:1?tls=true&cacertfile=not-there": "certificates in PEM",
		"kafka://h:1?tls=true&certfile=not-there":   "its key in PEM",
		"kafka://h:1?mechanism=SCRAM-SHA-256":       "no user",
		"kafka://u:p@h:1?mechanism=SCRAM":           `is not known`,
		"kafka://h:1?prefix=a.q":                    `the prefix "…"`,
	} {
		if _, err := providers.Open(t.Context(), address); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("Open(%q): err = %v, want one that says %q", address, err, want)
		}
	}
}

func TestAKafkaThatIsNotThereIsAnErrorAtOnce(t *testing.T) {
	t.Parallel()
	_, err := providers.Open(t.Context(), "kafka://127.0.0.1:1?broker=127.0.0.1:2")
	var said *kafka.Error
	if !errors.As(err, &said) || !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("err = %v, want an *Error that says connection refused", err)
	}
}

func TestWhatLendsIsOpenedToo(t *testing.T) {
	t.Parallel()
	at := "kafka://" + brokers.SharedKafka(t) + "?lend="
	for lender, want := range map[string]string{
		"mysql:x":   "unknown scheme",
		"embedded:": "names no file",
	} {
		if _, err := providers.Open(t.Context(), at+url.QueryEscape(lender)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("with delays of %q: err = %v, want one that says %q", lender, err, want)
		}
	}
}
