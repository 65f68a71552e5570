package embedded

import (
	"context"
	"fmt"
)

// applicationID marks the file as ours ("Bkst").
const applicationID = 0x426b7374

// migrations bring a file from each version to the next. They only ever add, so
// that a process of the version before can keep the file open meanwhile.
//
// All numbers of jobs, places and runs come from one sequence, row 1 of queue. It
// follows the clock in microseconds and never falls, so that a number is never
// used again, even by a restored backup, and a place tells since when.
//
// No queue has the number 0 or 1: a statement whose argument changes to or from one of
// these is planned anew.
//
// A job's body is never rewritten when it starts: where it stands is in the small
// tables ready, running and held, of which it is in one, or in none while it waits
// behind another of its ordering key. Only the first job of a key's line is in
// any of them.
func migrations() []string { return []string{version1} }

const version1 = `
create table queue (            -- queues by scope; 0 is the file's own, others borrow its delays
  q     integer primary key,
  scope integer not null,
  name  text    not null,
  depth integer not null default 0, -- unsettled jobs; in row 1 the sequence
  held  integer not null default 0,
  dead  integer not null default 0,
  bound integer not null default 0, -- the most that depth may reach through clients; 0: no bound; in row 1 the most dead letters
  unique (scope, name)
);
insert into queue (q, scope, name) values (1, -1, '');

create table scope (            -- who borrows
  scope integer primary key,
  name  text not null unique
);

create table job (
  n    integer primary key,
  q    integer not null,
  key  integer not null,        -- hash of the ordering key; 0: none
  body blob    not null
);

create table ready (            -- what can start, in the order of pos
  q   integer not null,
  pos integer not null,
  n   integer not null,
  primary key (q, pos, n)
) without rowid;

create table running (
  n       integer primary key,
  run     integer not null,     -- the fence
  q       integer not null,
  lease   integer not null,     -- when it ends, in nanoseconds since 1970
  crashes integer not null,     -- since the body was written
  pos     integer not null
);

create table line (             -- jobs with an ordering key, each key in the order of pos
  q   integer not null,
  key integer not null,
  pos integer not null,
  n   integer not null,
  primary key (q, key, pos)
) without rowid;

create table held (
  n      integer primary key,
  scope  integer not null,
  q      integer not null,
  due    integer not null,      -- or when its reservation ends, if token is not 0
  idh    integer not null,      -- hash of the job's id
  pos    integer not null,      -- its place in its key, if it keeps one; otherwise 0
  key    integer not null,      -- hash of the ordering key whose jobs are promoted one at a time; 0: none, or it keeps a place
  behind integer not null,      -- 1: another of its key is promoted before it
  token  integer not null       -- the promotion that reserved it, negative if that gave it back; 0: none
);
create index held_due on held (scope, due, n) where behind = 0;
create index held_id on held (scope, idh);
create index held_key on held (scope, q, key, due, n) where key <> 0;
create unique index held_first on held (scope, q, key) where key <> 0 and behind = 0;

create table claim (
  scope     integer not null,
  key       text    not null,
  owner     text    not null,
  until     integer not null,
  confirmed integer not null,
  primary key (scope, key)
) without rowid;
create index claim_until on claim (until);

create table dead (
  n     integer primary key,
  q     integer not null,
  at    integer not null,
  task  text    not null,
  class text    not null,
  id    text    not null,
  raw   integer not null,       -- 1: the body is no record
  body  blob    not null
);
create index dead_q on dead (q);
create index dead_task on dead (task);
create index dead_class on dead (class);
create index dead_id on dead (id);
`

// migrate creates the tables, or adds what a file of an older version lacks. The
// caller holds the write lock.
func migrate(ctx context.Context, conn *connection) error {
	version, err := fileVersion(ctx, conn)
	if err != nil || version == len(migrations()) {
		return err
	}
	script := "begin immediate; "
	for _, m := range migrations()[version:] {
		script += m
	}
	script += fmt.Sprintf("pragma application_id = %d; pragma user_version = %d; commit", applicationID, len(migrations()))
	if err := conn.script(ctx, script); err != nil {
		_ = conn.script(context.WithoutCancel(ctx), "rollback") // nothing to undo if it never began
		return err
	}
	return nil
}

// fileVersion returns the version of the file, 0 for a new one, and refuses what
// is not ours or not yet ours.
func fileVersion(ctx context.Context, conn *connection) (int, error) {
	var application, version, tables int64
	for pragma, value := range map[string]*int64{
		"pragma application_id":              &application,
		"pragma user_version":                &version,
		"select count(*) from sqlite_schema": &tables,
	} {
		if _, err := conn.row(ctx, pragma, nil, value); err != nil {
			return 0, err
		}
	}
	switch {
	case tables == 0:
		return 0, nil
	case application != applicationID:
		return 0, setupError("the file "+conn.path+" belongs to another program", "choose another path")
	case version > int64(len(migrations())):
		return 0, setupError(
			fmt.Sprintf("the file %s has version %d, and this program knows %d", conn.path, version, len(migrations())),
			"run a newer version of Backstage on it")
	}
	return int(version), nil
}
