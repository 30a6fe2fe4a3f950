/** The order of the test files: the longest first, so that none of them is left alone at the end. */
import { BaseSequencer, type TestSpecification } from "vitest/node"

/** These take longest, which vitest cannot know on a machine where they never ran. */
const LONGEST = [
  "packages/testing/test/Simulator.test.ts",
  "packages/http/test/Abuse.test.ts",
  "test/system/pages.test.ts",
  "packages/http/test/Contract.test.ts",
  "test/system/two-hosts.test.ts",
  "packages/event-sourcing/test/Aggregate.test.ts",
  "examples/test/property-testing.test.ts",
  "test/system/payments-kill.test.ts",
  "packages/event-store-postgres/test/PostgresEventStore.test.ts",
  "test/system/mail-kill.test.ts",
  "packages/upstreams/test/mail/VerdictThread.test.ts",
  "packages/testing/test/SimulatedSubscriptions.test.ts",
  "test/system/full-disk.test.ts",
  "test/system/leaders.test.ts",
  "packages/core/test/jobs/JobRunner.test.ts",
  "packages/core/test/jobs/Processes.test.ts",
  "test/system/proxies.test.ts",
  "test/conformance/Conformance.test.ts",
  "packages/testing/test/SimulatedLeaders.test.ts",
  "packages/core/test/payments/SubscriptionProcesses.test.ts",
  "test/system/memory.test.ts",
  "packages/core/test/jobs/Runners.test.ts",
  "test/system/shredding.test.ts",
  "packages/core/test/jobs/Windows.test.ts",
  "test/system/sockets.test.ts",
  "test/system/web-tool.test.ts",
  "test/system/price-alerts.test.ts",
  "test/system/mail-shredding.test.ts",
  "test/system/jobs.test.ts",
  "packages/millrace/test/DoctorCluster.test.ts",
  "test/chaos/kurrentdb.test.ts",
  "test/chaos/postgres.test.ts",
  "packages/upstreams/test/grammar/HarperGrammarChecker.test.ts",
  "packages/event-store-kurrentdb/test/KurrentDbEventStore.test.ts",
  "packages/testing/test/Check.test.ts",
  "packages/millrace/test/Stores.test.ts",
  "packages/millrace/test/Backup.test.ts",
  "packages/upstreams/test/payments/Stripe.suite.test.ts"
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
