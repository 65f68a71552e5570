package rabbitmq

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
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
	base, err := cfg.managementURL()
	if err != nil {
		return nil, err
	}
	uri, err := amqp.ParseURI(cfg.URL) // which was checked
	if err != nil {
		return nil, urlError()
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

// queueInfo is what the API says of a queue. It says Unacknowledged some seconds late.
type queueInfo struct {
	Arguments      map[string]any `json:"arguments"`
	Unacknowledged *int64         `json:"messages_unacknowledged"`
}

// queue asks for one queue, by its name in the broker.
func (m *management) queue(ctx context.Context, name string) (queueInfo, error) {
	var q queueInfo
	err := m.get(ctx, &q, "queues", url.PathEscape(m.vhost), url.PathEscape(name))
	return q, err
}

// policy sets arguments of all queues whose name matches.
type policy struct {
	Name       string         `json:"name"`
	Pattern    string         `json:"pattern"`
	ApplyTo    string         `json:"apply-to"`
	Priority   int            `json:"priority"`
	Definition map[string]any `json:"definition"`
}

// policies asks for those of users and of operators, strongest first. A queue has one
// of each, which add up.
func (m *management) policies(ctx context.Context) (all [][]policy, err error) {
	for _, kind := range []string{"policies", "operator-policies"} {
		var list []policy
		if err := m.get(ctx, &list, kind, url.PathEscape(m.vhost)); err != nil {
			return nil, err
		}
		slices.SortStableFunc(list, func(a, b policy) int { return cmp.Compare(b.Priority, a.Priority) })
		all = append(all, list)
	}
	return all, nil
}

// appliesTo reports whether a policy is one for a queue like ours.
func (p *policy) appliesTo(queue string) bool {
	kind := p.ApplyTo == "all" || p.ApplyTo == "queues" || p.ApplyTo == "quorum_queues"
	pattern, err := regexp.Compile(p.Pattern)
	return kind && (err != nil || pattern.MatchString(queue)) // the broker's patterns know a little more
}

// get asks for something.
func (m *management) get(ctx context.Context, into any, path ...string) error {
	at := m.base.JoinPath(append([]string{"api"}, path...)...)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return err
	}
	request.SetBasicAuth(m.user, m.password)
	response, err := m.client.Do(request)
	if err != nil {
		return fmt.Errorf("management API: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("management API: %s says %s", at.Redacted(), response.Status)
	}
	body := json.NewDecoder(response.Body)
	body.UseNumber() // arguments are compared
	return body.Decode(into)
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
	kinds, err := s.management.policies(ctx)
	if err != nil {
		s.news.emit(provider.Event{Kind: provider.Degraded, Message: "policies on queues cannot be seen", Err: err})
		return
	}
	for _, l := range lanes {
		queue := s.names.jobs(l.Queue)
		for _, list := range kinds {
			if i := slices.IndexFunc(list, func(p policy) bool { return p.appliesTo(queue) }); i >= 0 {
				s.reportPolicy(l.Queue, list[i])
			}
		}
	}
}

// reportPolicy tells of one on a queue.
func (s *store) reportPolicy(queue string, p policy) {
	for _, setting := range troubles() {
		if value, set := p.Definition[setting]; set {
			s.news.emit(provider.Event{Kind: provider.Degraded, Queue: queue,
				Message: fmt.Sprintf("the policy %s sets %s to %v on %s: remove that, because Backstage decides what becomes of a job", p.Name, setting, value, s.names.jobs(queue))})
		}
	}
}
