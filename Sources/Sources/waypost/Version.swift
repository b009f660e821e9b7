// The version of the program; deploy/package writes another one here for its tests.

let currentVersion = "0.1.0"
