package kafka

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/pbkdf2"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"strings"
	"testing"
	"time"

	kafkago "github.com/segmentio/kafka-go"

	"github.com/backstage-go/backstage/internal/brokers"
	"github.com/backstage-go/backstage/runtime/provider"
)

// guarded are the properties of a broker that wants users and passwords, and on which
// a user may do what lists say. admin may do everything.
func guarded() []string {
	return []string{
		"listener.security.protocol.map=CONTROLLER:PLAINTEXT,PLAINTEXT:SASL_PLAINTEXT",
		"sasl.enabled.mechanisms=PLAIN,SCRAM-SHA-256",
		"sasl.mechanism.inter.broker.protocol=PLAIN",
		`listener.name.plaintext.plain.sasl.jaas.config=org.apache.kafka.common.security.plain.PlainLoginModule required username="admin" password="admin-secret" user_admin="admin-secret" user_shop="shop-secret";`,
		"listener.name.plaintext.scram-sha-256.sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required;",
		"authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer",
		"super.users=User:admin;User:ANONYMOUS",
	}
}

// login makes a password that SCRAM knows a user by.
func login(t *testing.T, admin *store, user, password string) {
	t.Helper()
	salt := []byte(rand.Text())
	salted, err := pbkdf2.Key(sha256.New, password, salt, 4096, sha256.Size)
	if err != nil {
		t.Fatal(err)
	}
	r, err := admin.client.AlterUserScramCredentials(t.Context(), &kafkago.AlterUserScramCredentialsRequest{
		Upsertions: []kafkago.UserScramCredentialsUpsertion{{Name: user, Mechanism: kafkago.ScramMechanismSha256, Iterations: 4096, Salt: salt, SaltedPassword: salted}}})
	if err == nil {
		err = r.Results[0].Error
	}
	if err != nil {
		t.Fatalf("make a password of %s: %v", user, err)
	}
}

// allow lets a user do something with topics or groups that begin so.
func allow(t *testing.T, admin *store, user string, what kafkago.ResourceType, begins string, operations ...kafkago.ACLOperationType) {
	t.Helper()
	var entries []kafkago.ACLEntry
	for _, operation := range operations {
		entries = append(entries, kafkago.ACLEntry{ResourceType: what, ResourceName: begins, ResourcePatternType: kafkago.PatternTypePrefixed,
			Principal: "User:" + user, Host: "*", Operation: operation, PermissionType: kafkago.ACLPermissionTypeAllow})
	}
	r, err := admin.client.CreateACLs(t.Context(), &kafkago.CreateACLsRequest{ACLs: entries})
	if err == nil {
		err = errors.Join(r.Errors...)
	}
	if err != nil {
		t.Fatalf("allow %s: %v", user, err)
	}
}

func TestUsersPasswordsAndPermissions(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("it starts a broker of its own")
	}
	server := brokers.RequireKafka(t, brokers.KafkaOptions{Properties: guarded()})
	c := newCluster(t, server.Addr())
	known := func(user, password, mechanism string) *cluster {
		as := *c
		as.cfg.User, as.cfg.Password, as.cfg.Mechanism = user, password, mechanism
		return &as
	}
	admin, _ := known("admin", "admin-secret", "").open()
	login(t, admin, "shop", "scram-secret")

	for _, wrong := range []*cluster{c, known("shop", "wrong-secret", ""), known("shop", "wrong-secret", "SCRAM-SHA-256")} {
		wrong.cfg.Timeout = 3 * time.Second
		if s, err := open(t.Context(), wrong.cfg, wrong.in); err == nil {
			_ = s.provider.Close(t.Context())
			t.Errorf("as %q with %q: open succeeds", wrong.cfg.User, wrong.cfg.Mechanism)
		} else if strings.Contains(err.Error(), "secret") {
			t.Errorf("the error shows the password: %v", err)
		}
	}

	plain, _ := known("shop", "shop-secret", "PLAIN").open()
	stored := plain.Publish(t.Context(), someJobs(1, "q"), provider.PublishOptions{})
	if stored[0].Outcome != provider.OutcomeRefused || !strings.Contains(stored[0].Err.Error(), "may not use the topic") {
		t.Errorf("without permissions: %s, %v; want refused, naming them", stored[0].Outcome, stored[0].Err)
	}

	t.Run("all that the documentation lists", func(t *testing.T) {
		allow(t, admin, "shop", kafkago.ResourceTypeTopic, c.cfg.Prefix+".", kafkago.ACLOperationTypeCreate, kafkago.ACLOperationTypeDescribe,
			kafkago.ACLOperationTypeDescribeConfigs, kafkago.ACLOperationTypeRead, kafkago.ACLOperationTypeWrite, kafkago.ACLOperationTypeDelete)
		allow(t, admin, "shop", kafkago.ResourceTypeGroup, c.cfg.Prefix, kafkago.ACLOperationTypeRead)
		s, log := known("shop", "scram-secret", "SCRAM-SHA-256").open()
		if err := prepare(t, s, "q", 0); err != nil {
			t.Errorf("prepare: %v", err)
		}
		publish(t, s, someJobs(10, "q")...)
		at := bury(t, s, someJobs(2, "q")...)
		got, err := s.provider.Dead.Replay(t.Context(), at...)
		outcomes(t, got, err)
		if within, err := s.bounds(t.Context(), s.names.dead("q"), 0); err != nil || within[0].FirstOffset == 0 {
			t.Errorf("the dead letters begin at %d, %v", within[0].FirstOffset, err)
		}
		if depth := numbersOf(t, s, "q").Depth; depth != provider.Measured[int64](12) {
			t.Errorf("depth is %v, want 12", depth)
		}
		commit(t, s, "q", 0, 1, "")
		if log.has(provider.Degraded, "") {
			t.Errorf("events: %+v", log.all)
		}
	})
	t.Run("without deleting and reading settings", func(t *testing.T) {
		other := known("bounded", "scram-secret", "SCRAM-SHA-256")
		other.cfg.Prefix += "-b"
		other.cfg.Group = ""
		login(t, admin, "bounded", "scram-secret")
		allow(t, admin, "bounded", kafkago.ResourceTypeTopic, other.cfg.Prefix+".", kafkago.ACLOperationTypeCreate, kafkago.ACLOperationTypeDescribe,
			kafkago.ACLOperationTypeRead, kafkago.ACLOperationTypeWrite)
		allow(t, admin, "bounded", kafkago.ResourceTypeGroup, other.cfg.Prefix, kafkago.ACLOperationTypeRead)
		s, log := other.open()
		if err := prepare(t, s, "q", 0); err != nil || !log.has(provider.Degraded, "is not checked") {
			t.Errorf("prepare: %v; events: %+v", err, log.all)
		}
		publish(t, s, someJobs(10, "q")...)
		if err := s.deleteRecords(t.Context(), s.names.jobs("q"), 0, 1); !errors.Is(err, kafkago.TopicAuthorizationFailed) {
			t.Errorf("deleteRecords: %v, want [29]", err)
		}
		at := bury(t, s, someJobs(2, "q")...)
		got, err := s.provider.Dead.Discard(t.Context(), at[0])
		outcomes(t, got, err)
		if left := listed(t, s, provider.DeadFilter{}); len(left) != 1 || left[0] != "q-1" {
			t.Errorf("left are %v, want q-1", left)
		}
	})
}

// TestEncryptedConnections sends all through something that speaks TLS in front of the
// broker.
func TestEncryptedConnections(t *testing.T) {
	t.Parallel()
	c := sharedCluster(t)
	certificate, trusted := selfSigned(t)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go forward(conn, c.server)
		}
	}()
	c.through(listener.Addr().String())
	c.cfg.TLS = &tls.Config{RootCAs: trusted, MinVersion: tls.VersionTLS12}
	s, _ := c.open()
	publish(t, s, someJobs(10, "q")...)
	at := bury(t, s, aJob("dead", "q"))
	got, err := s.provider.Dead.Discard(t.Context(), at...)
	outcomes(t, got, err)

	c.cfg.TLS = &tls.Config{MinVersion: tls.VersionTLS12}
	if _, err := open(t.Context(), c.cfg, c.in); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("with a broker that nobody vouches for: %v", err)
	}
}

func forward(conn net.Conn, to string) {
	defer conn.Close()
	server, err := net.Dial("tcp", to)
	if err != nil {
		return
	}
	defer server.Close()
	go func() {
		_, _ = io.Copy(server, conn)
		server.Close()
	}()
	_, _ = io.Copy(conn, server)
}

// selfSigned makes a certificate for this machine, and what trusts it alone.
func selfSigned(t *testing.T) (tls.Certificate, *x509.CertPool) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	trusted := x509.NewCertPool()
	trusted.AddCert(parsed)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, trusted
}
