package rabbitmq

import (
	"strings"
	"testing"
	"time"
)

func TestSettingsThatCannotWorkAreNamed(t *testing.T) {
	t.Parallel()
	for words, cfg := range map[string]Config{
		"not understood":   {URL: "http://localhost"},
		"sets a heartbeat": {URL: "amqp://localhost?heartbeat=3"},
		"at most 100":      {Prefix: strings.Repeat("p", 101)},
		"management URL":   {Management: "localhost:15672"},
		"Timeout is -1s":   {Timeout: -time.Second},
	} {
		_, err := Open(t.Context(), cfg)
		wantSetup(t, err, words)
	}
	for _, cfg := range []Config{
		{URL: "amqp://shop:secret%@localhost"}, {Others: []string{"amqp://shop:secret@local host"}},
		{Management: "http://shop:secret%@localhost:15672"}, {Management: "http://shop:secret@"},
	} {
		if _, err := Open(t.Context(), cfg); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%v; want an error that shows no password", err)
		}
	}
	// A further node is looked at, too.
	_, err := Open(t.Context(), Config{Others: []string{"amqp://localhost?heartbeat=3"}})
	wantSetup(t, err, "sets a heartbeat")
}

func TestHeartbeatIsAThirdOfTheLease(t *testing.T) {
	t.Parallel()
	for lease, want := range map[time.Duration]heartbeat{
		3 * time.Second: 1, 5 * time.Second: 1, 30 * time.Second: 10, 100 * time.Hour: 1<<16 - 1,
	} {
		if got, err := heartbeatOf(lease); err != nil || got != want {
			t.Errorf("a lease of %v has a heartbeat of %d, %v; want %d", lease, got, err, want)
		}
	}
}

func TestPagesAndAddressesAreWhatTheyWere(t *testing.T) {
	t.Parallel()
	for _, queue := range []string{"work", "a/b@c", "über/queue with spaces"} {
		id, got, ok := parseAddress(addressOf("ID", queue))
		if !ok || id != "ID" || got != queue {
			t.Errorf("the address of a letter of queue %q: %q, %q, %t", queue, id, got, ok)
		}
	}
	for _, page := range []string{"no page", "12", "12/", "x/y"} {
		if _, err := parsePage(page); err == nil || !strings.Contains(err.Error(), page) {
			t.Errorf("page %q: %v; want that there is none", page, err)
		}
	}
	if _, _, ok := parseAddress("nowhere"); ok {
		t.Error("nowhere is an address")
	}
}
