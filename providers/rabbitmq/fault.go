package rabbitmq

import (
	"errors"
	"fmt"
	"net"
	"regexp"
	"strings"

	amqp "github.com/rabbitmq/amqp091-go"

	"github.com/backstage-go/backstage/runtime/provider"
)

// Error is why RabbitMQ did not do what was asked, and what to do about it.
type Error struct {
	// Problem says what is wrong, in words.
	Problem string
	// Remedy says what to do.
	Remedy string
	// Err is what RabbitMQ or the connection said.
	Err error
}

// Error returns all of it in one line.
func (e *Error) Error() string {
	said := ""
	if e.Err != nil {
		said = " (" + e.Err.Error() + ")"
	}
	return "rabbitmq: " + e.Problem + said + "; " + e.Remedy
}

// Unwrap returns what RabbitMQ or the connection said.
func (e *Error) Unwrap() error { return e.Err }

// codeOf is the broker's code for an error, 0 if it is not the broker's.
func codeOf(err error) int {
	var said *amqp.Error
	if errors.As(err, &said) {
		return said.Code
	}
	return 0
}

// explained adds to an error what is known of it.
func explained(err error) error {
	var known *Error
	var setup *provider.SetupError
	if err == nil || errors.As(err, &known) || errors.As(err, &setup) {
		return err
	}
	var network net.Error
	switch code := codeOf(err); {
	case errors.Is(err, amqp.ErrCredentials):
		return &Error{Problem: "it does not accept user and password", Remedy: "correct them; the user guest may connect from the same host only", Err: err}
	case errors.Is(err, amqp.ErrVhost) || code == amqp.NotAllowed:
		return &Error{Problem: "the virtual host is not there, or not for this user", Remedy: "make it, and give the user permissions in it", Err: err}
	case code == amqp.AccessRefused:
		return &Error{Problem: "the user may not do it", Remedy: "give the user permissions to configure, write and read what begins with the prefix, and to write to amq.default; or set Passive if it may not declare", Err: err}
	case code == amqp.PreconditionFailed && strings.Contains(err.Error(), "timeout"):
		return &Error{Problem: "a job ran for longer than the server's consumer_timeout, and all jobs of its lane were taken back", Remedy: "raise consumer_timeout in rabbitmq.conf", Err: err}
	case code == amqp.ConnectionForced, errors.Is(err, amqp.ErrClosed), errors.As(err, &network), code == amqp.FrameError:
		return &Error{Problem: "the connection is lost, or cannot be made", Remedy: "check the address, the network and the server; it is tried again", Err: err}
	}
	return err
}

// final reports whether trying to connect again is pointless until somebody does
// something.
func final(err error) bool {
	code := codeOf(err)
	return errors.Is(err, amqp.ErrCredentials) || errors.Is(err, amqp.ErrVhost) ||
		code == amqp.NotAllowed || code == amqp.AccessRefused
}

// inequivalent is how the broker says that a queue or an exchange has other
// arguments.
const inequivalent = `inequivalent arg '([^']*)' for (queue|exchange) '([^']*)'.*?: (.*)`

// declared makes of the error of a declaration one that says what to do.
func declared(err error) error {
	if codeOf(err) != amqp.PreconditionFailed {
		return explained(err)
	}
	m := regexp.MustCompile(inequivalent).FindStringSubmatch(err.Error())
	if m == nil {
		return explained(err)
	}
	return otherArguments(m[2], m[3], m[1], strings.TrimSuffix(m[4], `"`))
}

// otherArguments says that something is there, and is not as it has to be.
func otherArguments(what, which, argument, difference string) error {
	return setupError(
		fmt.Sprintf("the %s %s exists with another %s: %s", what, which, argument, difference),
		"let it run empty and delete it, so that it is declared anew (arguments cannot be changed), or use another prefix; the package's documentation lists the arguments")
}
