package rabbitmq

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"time"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/backstage-go/backstage/runtime/provider"
)

// management asks the management API, for what AMQP does not tell.
type management struct {
	client         *http.Client
	base           *url.URL
	user, password string
	vhost          string
}

func newManagement(cfg *Config) (*management, error) {
	base, err := url.Parse(cfg.Management)
	if err != nil {
		return nil, err
	}
	uri, err := amqp.ParseURI(cfg.URL)
	if err != nil {
		return nil, err
	}
	m := &management{user: uri.Username, password: uri.Password, vhost: uri.Vhost,
		client: &http.Client{Timeout: cfg.Timeout, Transport: &http.Transport{TLSClientConfig: clone(cfg.TLS), MaxIdleConns: 2, IdleConnTimeout: time.Minute}}}
	if base.User != nil {
		m.user = base.User.Username()
		m.password, _ = base.User.Password()
	}
	base.User = nil
	m.base = base
	return m, nil
}

func (m *management) close() { m.client.CloseIdleConnections() }

// queueInfo is what the API says of a queue.
type queueInfo struct {
	Arguments      map[string]any `json:"arguments"`
	Policy         string         `json:"policy"`
	Definition     policy         `json:"effective_policy_definition"`
	Unacknowledged *int64         `json:"messages_unacknowledged"`
}

// policy is what a policy sets. The API has a list in its place where there is none.
type policy map[string]any

// UnmarshalJSON takes a list for none.
func (p *policy) UnmarshalJSON(b []byte) error {
	var set map[string]any
	if json.Unmarshal(b, &set) == nil {
		*p = set
	}
	return nil
}

// queue asks for one queue, by its name in the broker.
func (m *management) queue(ctx context.Context, name string) (queueInfo, error) {
	var q queueInfo
	at := m.base.JoinPath("api", "queues", url.PathEscape(m.vhost), url.PathEscape(name))
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return q, err
	}
	request.SetBasicAuth(m.user, m.password)
	response, err := m.client.Do(request)
	if err != nil {
		return q, fmt.Errorf("management API: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return q, fmt.Errorf("management API: %s says %s", at.Redacted(), response.Status)
	}
	body := json.NewDecoder(response.Body)
	body.UseNumber() // arguments are compared
	return q, body.Decode(&q)
}

// troubles are settings of a policy that take jobs out of their queue.
func troubles() []string {
	return []string{"delivery-limit", "message-ttl", "expires", "max-length", "max-length-bytes"}
}

// reportPolicies tells of policies that get in the way, where the API is there to
// ask. They lose nothing, because of the rescue queue; but they make a job's life
// other than it was meant.
func (s *store) reportPolicies(ctx context.Context, lanes []provider.Lane) {
	if s.management == nil {
		return
	}
	var failed []error
	for _, l := range lanes {
		q, err := s.management.queue(ctx, s.names.jobs(l.Queue))
		if err != nil {
			failed = append(failed, err)
			continue
		}
		for _, setting := range troubles() {
			if value, set := q.Definition[setting]; set {
				s.news.emit(provider.Event{Kind: provider.Degraded, Queue: l.Queue,
					Message: fmt.Sprintf("the policy %s sets %s to %v on %s: remove that, because Backstage decides what becomes of a job", q.Policy, setting, value, s.names.jobs(l.Queue))})
			}
		}
	}
	if len(failed) > 0 {
		s.news.emit(provider.Event{Kind: provider.Degraded, Message: "policies on queues cannot be seen", Err: errors.Join(slices.Compact(failed)...)})
	}
}
