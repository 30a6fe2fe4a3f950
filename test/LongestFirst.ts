/** The order of the test files: the longest first, so that none of them is left alone at the end. */
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** These take longest, which vitest cannot know on a machine where they never ran. */
const LONGEST = [
  "packages/testing/test/Simulator.test.ts",
  "packages/http/test/Abuse.test.ts",
  "test/system/sockets.test.ts",
  "packages/millrace/test/Backup.test.ts",
  "packages/core/test/jobs/Processes.test.ts",
  "test/system/full-disk.test.ts",
  "test/system/memory.test.ts",
  "packages/event-sourcing/test/Aggregate.test.ts",
  "packages/core/test/jobs/Runners.test.ts",
  "packages/millrace/test/Stores.test.ts",
  "test/system/kill.test.ts",
  "test/system/upgrade.test.ts",
  "packages/http/test/Contract.test.ts",
  "test/system/jobs.test.ts",
  "packages/core/test/ledger/snapshot.test.ts"
]

const rank = ({ moduleId }: TestSpecification): number => {
  const index = LONGEST.findIndex((file) => moduleId.endsWith(file))
  return index === -1 ? LONGEST.length : index
}

export default class LongestFirst extends BaseSequencer {
  override async sort(files: Array<TestSpecification>): Promise<Array<TestSpecification>> {
    const sorted = await super.sort(files)
    return sorted.sort((one, other) => rank(one) - rank(other))
  }
}
