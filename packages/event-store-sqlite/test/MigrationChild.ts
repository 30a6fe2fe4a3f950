/** Opens a log, and so migrates it: `node MigrationChild.ts <file>`. Prints `ready` before, and `open` after. */
import { writeSync } from "node:fs"
import { SqliteLog } from "../src/SqliteLog.ts"

writeSync(1, "ready\n")
new SqliteLog({ filename: process.argv[2] ?? "" }).close()
writeSync(1, "open\n")
