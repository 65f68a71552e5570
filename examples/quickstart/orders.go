package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	quickstartv1 "github.com/backstage-go/backstage/examples/quickstart/gen/quickstart/v1"
)

// order is one line of the file.
type order struct {
	OrderID string `json:"order_id"`
	Account string `json:"account"`
	Cents   int64  `json:"cents"`
}

// malformed is a line that is no order.
type malformed struct {
	line int
	err  error
}

// readOrders reads JSON lines. Empty lines are counted as malformed, so that the
// closing table adds up to the file's lines.
func readOrders(r io.Reader) (orders []*quickstartv1.ChargeCardRequest, bad []malformed, err error) {
	lines := bufio.NewReader(r)
	for n := 1; ; n++ {
		line, err := lines.ReadBytes('\n')
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, nil, fmt.Errorf("line %d: %w", n, err)
		}
		if err != nil && len(line) == 0 {
			return orders, bad, nil
		}
		if o, err := parseOrder(line); err != nil {
			bad = append(bad, malformed{n, err})
		} else {
			orders = append(orders, o)
		}
	}
}

func parseOrder(line []byte) (*quickstartv1.ChargeCardRequest, error) {
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	var o order
	switch err := decoder.Decode(&o); {
	case errors.Is(err, io.EOF):
		return nil, errors.New("empty line")
	case err != nil:
		return nil, err
	case decoder.More():
		return nil, errors.New("more than one value")
	case o.OrderID == "":
		return nil, errors.New(`"order_id" is missing`)
	case o.Cents <= 0:
		return nil, errors.New(`"cents" must be positive`)
	}
	return &quickstartv1.ChargeCardRequest{OrderId: o.OrderID, Account: o.Account, Cents: o.Cents}, nil
}
