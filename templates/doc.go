// Package templates has the text that Backstage writes and that is not generated
// code: a first project ([Project]), the catalogue of tasks ([Catalogue]) and the
// graph of their chains ([Graph]).
//
// Each document is plain data with the templates that print it. Its JSON form is
// what the commands print with -o json: fields are added to it, never renamed.
package templates
