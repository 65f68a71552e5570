package providers

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/url"
	"os"
	"strings"

	"github.com/backstage-go/backstage/providers/kafka"
	"github.com/backstage-go/backstage/runtime/provider"
)

// openKafka opens a kafka URL, and what lends it Delays and Claims.
func openKafka(ctx context.Context, a *address) (*provider.Provider, error) {
	if a.url.Hostname() == "" || strings.Trim(a.url.Path, "/") != "" {
		return nil, errors.New("is no address of a broker; write kafka://HOST:PORT without a path")
	}
	config := kafka.Config{
		Brokers:     []string{withPort(a.url.Host)},
		Mechanism:   a.take("mechanism"),
		Prefix:      a.take("prefix"),
		Group:       a.take("group"),
		Partitions:  a.number("partitions"),
		Replication: a.number("replication"),
		MaxRecord:   a.number("max_record"),
		Passive:     a.choice("passive", "false", "true"),
	}
	if user := a.url.User; user != nil {
		config.User = user.Username()
		config.Password, _ = user.Password()
	}
	for _, host := range a.settings["broker"] {
		if other, err := url.Parse("//" + host); err != nil || other.Host != host {
			a.want("broker", "HOST:PORT")
		}
		config.Brokers = append(config.Brokers, withPort(host))
	}
	a.settings.Del("broker")
	config.TLS = a.tls()
	lender := a.take("lend")
	if err := a.done(); err != nil {
		return nil, err
	}
	p, err := kafka.Open(ctx, config)
	if err != nil {
		return nil, err
	}
	return borrow(ctx, p, lender, "kafka-"+cmp.Or(config.Prefix, "backstage"))
}

// withPort adds Kafka's usual port to a host that has none.
func withPort(host string) string {
	if _, _, err := net.SplitHostPort(host); err == nil {
		return host
	}
	return host + ":9092"
}

// tls takes the settings of encrypted connections; nil if they are not encrypted.
func (a *address) tls() *tls.Config {
	on := a.choice("tls", "false", "true")
	authorities, certificate, key := a.take("cacertfile"), a.take("certfile"), a.take("keyfile")
	if !on {
		if authorities+certificate+key != "" {
			a.want("tls", "true, where there are files of certificates")
		}
		return nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12}
	if authorities != "" {
		config.RootCAs = x509.NewCertPool()
		if pem, err := os.ReadFile(authorities); err != nil || !config.RootCAs.AppendCertsFromPEM(pem) {
			a.want("cacertfile", "a file with certificates in PEM")
		}
	}
	if certificate != "" || key != "" {
		pair, err := tls.LoadX509KeyPair(certificate, key)
		if err != nil {
			a.want("certfile", "and keyfile a certificate and its key in PEM")
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config
}
