package providers_test

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/backstage-go/backstage/providers"
	"github.com/backstage-go/backstage/runtime/provider"
)

// TestNoErrorShowsWhatIsSecret: addresses have users, passwords and settings, and errors
// are logged. All that is secret in these has one letter, and many of it.
func TestNoErrorShowsWhatIsSecret(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	for _, address := range []string{
		"zzz:zzz@127.0.0.1:1",
		"zzz",
		"memory:?bound.mail=zzz",
		"embedded:x.db?synchronous=zzz",
		"embedded:x.db?bound.mail=zzz%",
		"redis://zzz:zzz@127.0.0.1:1",
		"redis://zzz:zzz@127.0.0.1:1?cluster=true",
		"redis://zzz:zzz@127.0.0.1:1?master_name=main&sentinel_username=zzz&sentinel_password=zzz",
		"redis://zzz:zzz@127.0.0.1:1?tags=zzz",
		"redis://zzz:zzz@127.0.0.1:1?sync=zzz",
		"redis://zzz:zzz@127.0.0.1:1?pool_size=zzz",
		"redis://zzz:zzz@127.0.0.1:1?dial_timeout=zzz",
		"redis://zzz:zzz@127.0.0.1:1?namespace={zzz}",
		"redis://zzz:zzz@127.0.0.1:1?client_name=zzz&addr=h2",
		"redis://zzz:zzz%@127.0.0.1:1",
		"redis://zzz:1/zzz@127.0.0.1:1",
		"redis://zzz:zz?z@127.0.0.1:1",
		"amqp://zzz:zzz@127.0.0.1:1",
		"amqp://zzz:zzz@127.0.0.1:1/shop?node=127.0.0.1:2&node=127.0.0.1:3",
		"amqp://zzz:zzz@127.0.0.1:1?node=zzz:zzz@127.0.0.1:2",
		"amqp://zzz:zzz@127.0.0.1:1?node=zzz%25",
		"amqp://zzz:zzz@127.0.0.1:1?passive=zzz",
		"amqp://zzz:zzz@127.0.0.1:1?channel_max=zzz",
		"amqp://zzz:zzz@127.0.0.1:1?prefx=zzz",
		"amqp://zzz:zzz@127.0.0.1:1?management=zzz",
		"amqp://zzz:zzz@127.0.0.1:1?management=http://zzz:zzz@127.0.0.1:2",
		"amqp://zzz:zzz%@127.0.0.1:1",
		"amqp://zzz:zzz@127.0.0.1:99999999999",
		"kafka://zzz:zzz@127.0.0.1:1",
		"kafka://zzz:zzz@127.0.0.1:1?broker=zzz:zzz@127.0.0.1:2",
		"kafka://zzz:zzz@127.0.0.1:1?mechanism=zzz",
		"kafka://zzz:zzz@127.0.0.1:1?prefix=zzz%20",
		"kafka://zzz:zzz@127.0.0.1:1?tls=true&cacertfile=zzz",
		"kafka://zzz:zzz@127.0.0.1:1?lend=redis://zzz:zzz@127.0.0.1:1",
	} {
		for _, open := range []func(context.Context, string) (*provider.Provider, error){providers.Open, providers.OpenExisting} {
			_, err := open(ctx, address)
			if err == nil || strings.Contains(err.Error(), "zz") {
				t.Errorf("open(%q): err = %v; want one without user, password and values", address, err)
			}
		}
	}
}

func TestAnErrorSaysWhichAddressAndWhy(t *testing.T) {
	t.Parallel()
	_, err := providers.Open(t.Context(), "redis://user:secret@h:1/0?namespace={a}&client_name=b")
	want := `provider address "redis://h:1/0": `
	if err == nil || !strings.HasPrefix(err.Error(), want) {
		t.Errorf("err = %v, want one that begins %s", err, want)
	}
	var setup *provider.SetupError
	if !errors.As(err, &setup) {
		t.Errorf("err = %v, want what the provider's own Open returns in it", err)
	}
}

func TestAnAddressWithoutSecrets(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]string{
		"embedded:/var/lib/50%@.db?bound.mail=4":                                                "embedded:/var/lib/50%@.db?bound.mail=4",
		"redis://user:secret@h:1/0?tags=queue&addr=h2:1":                                        "redis://h:1/0?tags=queue&addr=h2:1",
		"redis://h:1?client_name=a@b":                                                           "redis://h:1?client_name=a@b",
		"redis://h:1?master_name=m&sentinel_password=zzz":                                       "redis://h:1?master_name=m",
		"amqp://user:secret@h/shop?management=" + url.QueryEscape("http://user:secret@h:15672"): "amqp://h/shop?management=" + url.QueryEscape("http://h:15672"),
		"kafka://user:secret@h:1?lend=" + url.QueryEscape("redis://user:secret@h:2"):            "kafka://h:1?lend=" + url.QueryEscape("redis://h:2"),
		"redis://user:sec%ret@h":                                                                "redis:",
	} {
		if got := providers.WithoutSecrets(address); got != want {
			t.Errorf("WithoutSecrets(%q) = %q, want %q", address, got, want)
		}
	}
}
