package main

import (
	"flag"

	"github.com/backstage-go/backstage/cmd/backstagectl/internal/batch"
	"github.com/backstage-go/backstage/internal/command"
)

func replayCommand(w world) *command.Command {
	return &command.Command{
		Name:     "dead replay",
		Operands: "[ID…]",
		Summary:  "return dead letters to their queues",
		About: `Replay returns dead letters to their queues, where workers run them again: under
their old ids, with counters that start again, and with their history. Those that
died first return first. Letters are named, or chosen by flags (backstagectl help
letters).

Without -yes it prints what it would do, and does nothing. With -yes it does it, at
most -rate jobs a second so that the queue's workers can follow, and reports at the
end what became of each:

  replayed   it is in its queue
  gone       it is no dead letter any more: somebody else has replayed or discarded
             it, or a run of this batch that was cut off
  duplicate  another job holds its dedupe key; it stays a dead letter
  refused    it stays a dead letter; the report says why
  unknown    the broker's answer was lost: it may be replayed or not
  untried    the run ended before its turn

With -journal FILE the plan and its progress are kept in a file. A run that was
killed goes on when it is started again with the file, and replays no job twice,
also not one that ran and died again meanwhile (backstagectl help batches).`,
		Examples: `backstagectl dead replay 1760184000000001 -yes
backstagectl dead replay -queue orders -class exhausted                  # only says what it would do
backstagectl dead replay -queue orders -class exhausted -journal r.jsonl # and keeps the plan
backstagectl dead replay -journal r.jsonl -yes -rate 20                  # does that; again after a crash
backstagectl dead replay -ids ids.txt -yes -o json > report.jsonl`,
		Codes: `0  all are replayed, gone or duplicates; without -yes: the plan is printed
1  some are refused, unknown or untried, or the broker could not be asked
2  wrong usage`,
		Flags: func(set *flag.FlagSet) command.Action { return batchFlags(w, set, batch.Replay).run },
	}
}

func discardCommand(w world) *command.Command {
	return &command.Command{
		Name:     "dead discard",
		Operands: "[ID…]",
		Summary:  "remove dead letters for good",
		About: `Discard removes dead letters. Their jobs are lost then, with all that is known of
them. Letters are named, or chosen by flags (backstagectl help letters).

Without -yes it prints what it would do, and does nothing. Plans, journals, rates and
the report are those of dead replay; the word for what was done is discarded.`,
		Examples: `backstagectl dead discard job:A-1009                    # only says what it would do
backstagectl dead discard job:A-1009 -yes
backstagectl dead discard -older-than 30d -yes -rate 0
backstagectl dead discard -class 'no record' -yes`,
		Codes: `0  all are discarded or gone; without -yes: the plan is printed
1  some are refused, unknown or untried, or the broker could not be asked
2  wrong usage`,
		Flags: func(set *flag.FlagSet) command.Action { return batchFlags(w, set, batch.Discard).run },
	}
}
