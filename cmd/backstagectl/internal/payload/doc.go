// Package payload shows what jobs carry, by the schemas of their tasks, and never
// what those mark as secret.
//
//	schema, err := payload.New(set)
//	shown, err := schema.Show("shop.v1.OrderTasks.ChargeCard", job.Payload)
//
// A message is shown as protobuf's JSON, with four differences, all of which keep
// something out of sight:
//
//   - The value of a field that is marked debug_redact is [Mark], whatever its type:
//     a scalar, a message, a list, a map, an extension, a group, at any depth. So is
//     an enum's value that is marked.
//   - Fields that the schema does not know are counted ("@unknown_fields": 2), since
//     a newer schema may mark them.
//   - A google.protobuf.Any whose type the schema does not have shows its type and
//     its size ("@bytes": 120).
//   - An Any that does not decode says so ("@undecodable": true), with its size.
//
// A schema can only keep secret what it marks: one that is older than the mark, or
// of another program, shows the field.
package payload
