package embedded

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"

	"modernc.org/sqlite"
)

// connection is the writer's to the file. It speaks to the driver itself, because the
// pool, the locks and the conversions of database/sql cost several allocations for
// each row and each statement, and nobody else uses it.
type connection struct {
	path       string
	conn       driver.Conn
	statements map[string]statement
	args       []driver.NamedValue // of a statement that is about to run
}

// statement is what the driver's statements can do.
type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// connect opens a connection to the file at path, as dsn says.
func connect(path, dsn string) (*connection, error) {
	conn, err := new(sqlite.Driver).Open(dsn)
	if err != nil {
		return nil, fault(path, err)
	}
	return &connection{path: path, conn: conn, statements: make(map[string]statement)}, nil
}

func (c *connection) close() {
	for _, s := range c.statements {
		_ = s.Close()
	}
	_ = c.conn.Close()
}

// script runs statements that are needed once.
func (c *connection) script(ctx context.Context, text string) error {
	s, err := c.prepare(ctx, text)
	if err == nil {
		_, err = s.ExecContext(ctx, nil)
		err = errors.Join(err, s.Close())
	}
	return fault(c.path, err)
}

func (c *connection) prepare(ctx context.Context, query string) (statement, error) {
	prepared, err := c.conn.(driver.ConnPrepareContext).PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return prepared.(statement), nil
}

// statement returns one that is prepared once.
func (c *connection) statement(ctx context.Context, query string) (statement, error) {
	if s := c.statements[query]; s != nil {
		return s, nil
	}
	s, err := c.prepare(ctx, query)
	if err == nil {
		c.statements[query] = s
	}
	return s, err
}

// exec runs a statement, and returns how many rows it changed.
func (c *connection) exec(ctx context.Context, query string, args ...any) (int64, error) {
	s, err := c.statement(ctx, query)
	if err != nil {
		return 0, fault(c.path, err)
	}
	result, err := s.ExecContext(ctx, c.bound(args))
	clear(c.args) // bodies may be large
	if err != nil {
		return 0, fault(c.path, err)
	}
	changed, err := result.RowsAffected()
	return changed, fault(c.path, err)
}

// errEnough ends a query early, and is no error.
var errEnough = errors.New("enough")

// query calls each for every row, until it returns an error; errEnough is none.
func (c *connection) query(ctx context.Context, query string, args []any, each func(row) error) error {
	s, err := c.statement(ctx, query)
	if err != nil {
		return fault(c.path, err)
	}
	rows, err := s.QueryContext(ctx, c.bound(args))
	clear(c.args)
	if err != nil {
		return fault(c.path, err)
	}
	r := make(row, len(rows.Columns()))
	for err == nil {
		if err = rows.Next(r); err == nil {
			err = each(r)
		}
	}
	if err == io.EOF || err == errEnough {
		err = nil
	}
	return fault(c.path, errors.Join(err, rows.Close()))
}

// row reads one row, and reports whether there is one.
func (c *connection) row(ctx context.Context, query string, args []any, into ...any) (bool, error) {
	found := false
	err := c.query(ctx, query, args, func(r row) error {
		found = true
		return r.scan(into...)
	})
	return found, err
}

// bound returns arguments as the driver wants them. They hold until the next call.
func (c *connection) bound(args []any) []driver.NamedValue {
	c.args = c.args[:0]
	for i, arg := range args {
		if n, ok := arg.(int); ok {
			arg = int64(n)
		}
		c.args = append(c.args, driver.NamedValue{Ordinal: i + 1, Value: arg})
	}
	return c.args
}

// row is a row that a query found. Its bytes are nobody else's and may be kept; the
// row itself is overwritten by the next.
type row []driver.Value

// scan takes the columns over. Null is zero.
func (r row) scan(into ...any) error {
	for i, at := range into {
		ok := false
		switch at := at.(type) {
		case *int64:
			*at, ok = r[i].(int64)
		case *bool:
			var n int64
			n, ok = r[i].(int64)
			*at = n != 0
		case *string:
			*at, ok = r[i].(string)
		case *[]byte:
			*at, ok = r[i].([]byte)
		}
		if !ok && r[i] != nil {
			return fmt.Errorf("column %d is a %T, and a %T was wanted", i, r[i], at)
		}
	}
	return nil
}
