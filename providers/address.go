package providers

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// address is an address taken apart. Its settings are taken out of it one by one.
type address struct {
	scheme   string
	path     string   // what follows the scheme, without settings
	url      *url.URL // nil where it is none: memory, embedded
	settings url.Values

	shown string            // the address as errors may show it
	hides *strings.Replacer // takes out of an error what shown leaves out
	wrong error             // the first setting that is wrong
}

// parse returns what it understood of an address even with an error, which failed
// wants.
func parse(text string) (*address, error) {
	a := &address{hides: strings.NewReplacer()}
	scheme, rest, found := strings.Cut(text, ":")
	if !found {
		return a, errors.New("no scheme; " + known)
	}
	path, query, _ := strings.Cut(strings.TrimPrefix(rest, "//"), "?")
	switch scheme {
	case "memory", "embedded":
		a.shown = scheme + ":" + path
	case "redis", "rediss", "amqp", "amqps", "kafka":
		a.shown = scheme + ":"
		var err error
		if a.url, err = url.Parse(text); err != nil || strings.Contains(a.url.EscapedPath()+a.url.Fragment, "@") {
			// err has the password, and what is behind a slash may be the rest of one.
			return a, fmt.Errorf("is no URL; write %s://USER:PASSWORD@HOST:PORT, with special characters escaped", scheme)
		}
		if !strings.Contains(a.url.RawQuery, "@") { // or it may be one with a question mark
			a.shown = scheme + "://" + a.url.Host + a.url.EscapedPath()
		}
	default:
		if strings.Contains(rest, "@") && !strings.HasPrefix(rest, "//") {
			return a, errors.New("no scheme; " + known) // but a user
		}
		return a, fmt.Errorf("unknown scheme %q; %s", scheme, known)
	}
	a.scheme, a.path = scheme, path
	var err error
	if a.settings, err = url.ParseQuery(query); err != nil { // err has a value
		return a, errors.New("has settings that are not understood; write ?NAME=VALUE&NAME=VALUE, with special characters escaped")
	}
	a.hides = hiding(a.url, a.settings)
	return a, nil
}

// hiding returns what takes the user, the password and the values of settings out of a
// text. Values are found where they are quoted: a number or a name may be in any word.
func hiding(at *url.URL, settings url.Values) *strings.Replacer {
	var pairs []string
	if at != nil {
		if at.User != nil {
			pairs = append(pairs, at.User.String()+"@", "")
		}
		if at.RawQuery != "" {
			pairs = append(pairs, "?"+at.RawQuery, "")
		}
	}
	for _, values := range settings {
		for _, value := range values {
			if value != "" {
				pairs = append(pairs, strconv.Quote(value), `"…"`)
			}
		}
	}
	return strings.NewReplacer(pairs...)
}

// addressError says what is wrong with an address, or with what it leads to.
type addressError struct {
	text string
	err  error
}

func (e *addressError) Error() string { return e.text }
func (e *addressError) Unwrap() error { return e.err }

// failed makes the errors of this package, all of them, because addresses have secrets
// and errors are logged.
func (a *address) failed(err error) error {
	text := "provider address"
	if a.shown != "" {
		text += " " + strconv.Quote(a.shown)
	}
	return &addressError{text + ": " + a.hides.Replace(err.Error()), err}
}

func (a *address) take(name string) string {
	value := a.settings.Get(name)
	a.settings.Del(name)
	return value
}

func (a *address) want(name, what string) {
	if a.wrong == nil {
		a.wrong = fmt.Errorf("setting %s: want %s", name, what)
	}
}

// bounds takes the settings of queues.
func (a *address) bounds() map[string]int {
	bounds := make(map[string]int)
	for _, name := range a.names() {
		queue, ok := strings.CutPrefix(name, "bound.")
		if !ok {
			continue
		}
		n, err := strconv.Atoi(a.take(name))
		if err != nil || n < 0 {
			a.want(name, "a number of jobs")
		}
		bounds[queue] = n
	}
	return bounds
}

// choice takes a setting with two values, and reports whether it is the second.
func (a *address) choice(name, usual, other string) bool {
	value := a.take(name)
	if value != "" && value != usual && value != other {
		a.want(name, usual+" or "+other)
	}
	return value == other
}

// number takes a setting that counts something.
func (a *address) number(name string) int {
	value := a.take(name)
	n, err := strconv.Atoi(value)
	if value != "" && (err != nil || n < 0) {
		a.want(name, "a number, 0 or more")
	}
	return n
}

// duration takes a setting that is a time, "45m".
func (a *address) duration(name string) time.Duration {
	value := a.take(name)
	if value == "" {
		return 0
	}
	d, err := time.ParseDuration(value)
	if err != nil {
		a.want(name, "a time such as 45m")
	}
	return d
}

// done returns the first setting that is wrong, or one that nobody has taken.
func (a *address) done() error {
	if names := a.names(); a.wrong == nil && len(names) > 0 {
		return fmt.Errorf("unknown setting %q", names[0])
	}
	return a.wrong
}

func (a *address) names() []string {
	var names []string
	for name := range a.settings {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// WithoutSecrets returns an address as it may be kept and shown: without user and
// password, also those of the management API, of sentinels and of what lends. It opens
// the same store where neither is asked for. Of what is no URL it returns the scheme alone,
// and of a file's address all.
func WithoutSecrets(address string) string {
	scheme, _, _ := strings.Cut(address, ":")
	if scheme == "memory" || scheme == "embedded" {
		return address
	}
	at, err := url.Parse(address)
	if err != nil {
		return scheme + ":"
	}
	at.User = nil
	settings := at.Query()
	before := settings.Encode()
	settings.Del("sentinel_username")
	settings.Del("sentinel_password")
	for _, name := range []string{"management", "lend"} {
		if others := settings[name]; len(others) > 0 {
			others[0] = WithoutSecrets(others[0])
		}
	}
	if after := settings.Encode(); after != before {
		at.RawQuery = after
	}
	return at.String()
}
