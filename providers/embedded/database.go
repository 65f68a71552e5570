package embedded

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"path/filepath"
	"strings"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// readers is how many connections look at the file beside the writer.
const readers = 4

// dsn is the file as the driver wants it, with what every connection sets.
func dsn(path string, in internals, pragmas ...string) string {
	slashed := filepath.ToSlash(path)
	if !strings.HasPrefix(slashed, "/") {
		slashed = "/" + slashed // a drive's letter
	}
	query := make([]string, 0, len(pragmas)+1)
	for _, p := range pragmas {
		query = append(query, "_pragma="+url.QueryEscape(p))
	}
	if in.params != "" {
		query = append(query, in.params)
	}
	return "file:" + (&url.URL{Path: slashed}).EscapedPath() + "?" + strings.Join(query, "&")
}

// openWriter opens the one connection that writes, and brings the file up to date.
// The caller holds the write lock.
func openWriter(ctx context.Context, path string, cfg Config, in internals) (*connection, error) {
	conn, err := connect(path, dsn(path, in, "busy_timeout(5000)", "temp_store(memory)"))
	if err != nil {
		return nil, err
	}
	if err := prepareFile(ctx, conn, cfg, in); err != nil {
		conn.close()
		return nil, err
	}
	return conn, nil
}

func prepareFile(ctx context.Context, conn *connection, cfg Config, in internals) error {
	var pages int64
	if _, err := conn.row(ctx, "pragma page_count", nil, &pages); err != nil {
		return err
	}
	if pages == 0 {
		// Only before the first page is written does this take effect.
		if err := conn.script(ctx, "pragma auto_vacuum = incremental"); err != nil {
			return err
		}
	} else if _, err := fileVersion(ctx, conn); err != nil {
		return err
	}
	var mode string
	if _, err := conn.row(ctx, "pragma journal_mode = wal", nil, &mode); err != nil {
		return err
	}
	if mode != "wal" {
		return setupError("the file "+conn.path+" cannot have a write-ahead log (its journal is "+mode+")",
			"put it on a local disk, and check that file and folder can be written")
	}
	settings := fmt.Sprintf("pragma synchronous = %s; pragma wal_autocheckpoint = 4000; pragma journal_size_limit = 67108864; pragma cache_size = -65536", cfg.Synchronous)
	if in.maxPages > 0 {
		settings += fmt.Sprintf("; pragma max_page_count = %d", in.maxPages)
	}
	if err := conn.script(ctx, settings); err != nil {
		return err
	}
	if err := migrate(ctx, conn); err != nil {
		return err
	}
	// From here on the writer waits by itself (see beginPatiently).
	return conn.script(ctx, "pragma busy_timeout = 0")
}

// openReaders opens the connections for looking at the file.
func openReaders(path string, in internals) (*sql.DB, error) {
	db, err := sql.Open("sqlite", dsn(path, in, "busy_timeout(2000)", "query_only(1)"))
	if err != nil {
		return nil, fault(path, err)
	}
	db.SetMaxOpenConns(readers)
	db.SetMaxIdleConns(readers)
	return db, nil
}
