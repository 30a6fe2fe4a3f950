/** One plain closing line, for whoever reads the end of a log and not its colours. */
import type { Reporter, TestModule } from "vitest/node"

export default class PlainLine implements Reporter {
  onTestRunEnd(modules: ReadonlyArray<TestModule>): void {
    const count = { passed: 0, failed: 0, skipped: 0 }
    for (const module of modules) {
      // A file that cannot be loaded has no tests to fail
      if (module.errors().length > 0) count.failed++
      for (const test of module.children.allTests()) {
        const { state } = test.result()
        if (state !== "pending") count[state]++
      }
    }
    console.log(`${count.passed} passed, ${count.failed} failed, ${count.skipped} skipped`)
  }
}
