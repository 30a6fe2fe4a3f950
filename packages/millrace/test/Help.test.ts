/** What the command line says of itself: every command, with an example that is true. */
import { readFileSync } from "node:fs"
import { NodeServices } from "@effect/platform-node"
import { Console, Effect, Schema } from "effect"
import { describe, expect, it } from "vitest"
import { millrace } from "../../../test/system/InProcess.ts"
import { bin, runProcess } from "../../../test/system/Server.ts"
import * as Cli from "../src/Cli.ts"

const COMMANDS = [
  "serve",
  "proxy",
  "proxy sessions",
  "accounts",
  "accounts open",
  "accounts show",
  "accounts suspend",
  "accounts reinstate",
  "accounts close",
  "accounts erase",
  "keys",
  "keys issue",
  "keys list",
  "keys revoke",
  "credits",
  "credits grant",
  "credits refund",
  "credits claw-back",
  "prices",
  "prices list",
  "prices publish",
  "holds",
  "holds list",
  "charges",
  "charges show",
  "webhooks",
  "webhooks add",
  "webhooks list",
  "webhooks show",
  "webhooks change",
  "webhooks rotate",
  "webhooks disable",
  "webhooks enable",
  "webhooks remove",
  "webhooks test",
  "webhooks deliveries",
  "webhooks dead",
  "webhooks resend",
  "balance",
  "events",
  "audit",
  "journal",
  "backup",
  "restore",
  "doctor"
]

/** Everything that administrators do, and that is recorded. */
const ACTS = COMMANDS.filter((command) =>
  /open|suspend|reinstate|close|erase|issue|revoke|grant|refund|claw-back|publish|restore|webhooks (?:add|change|rotate|disable|enable|remove)/u.test(
    command
  )
)

const help = (command: string): Promise<string> => {
  const lines: Array<string> = []
  const console = Object.assign(Object.create(globalThis.console), { log: (line: string) => lines.push(line) })
  return Cli.run([...command.split(" ").filter((word) => word !== ""), "--help"]).pipe(
    Effect.provideService(Console.Console, console),
    Effect.provide(NodeServices.layer),
    Effect.runPromise,
    (done) => done.then(() => lines.join("\n"))
  )
}

const examplesIn = (text: string): ReadonlyArray<string> =>
  text
    .slice(text.indexOf("EXAMPLES"))
    .split("\n")
    .flatMap((line) => /^ +(?:MILLRACE_\S+ )?millrace (?<words>.*)$/u.exec(line)?.groups?.["words"] ?? [])

/** As a shell takes a line apart: what follows a pipe, or goes to a file, is not ours. */
const wordsOf = (line: string): ReadonlyArray<string> =>
  [...(line.split(/ [>|&]/u, 1)[0] ?? "").matchAll(/"(?<quoted>[^"]*)"|(?<plain>\S+)/gu)].map(
    ({ groups }) => groups?.["quoted"] ?? groups?.["plain"] ?? ""
  )

describe("the help", () => {
  it("of millrace names every command", async () => {
    const text = await help("")
    for (const command of COMMANDS) expect(text).toMatch(new RegExp(`^  ${command.split(" ")[0]} `, "mu"))
    expect(examplesIn(text).length).toBeGreaterThan(0)
  })

  it.each(COMMANDS)("of %s shows examples that its own parser accepts", async (command) => {
    const examples = examplesIn(await help(command))
    expect(examples.length).toBeGreaterThan(0)
    for (const example of examples) {
      expect(example.startsWith(command)).toBe(true)
      if (command === "serve") continue
      // No store can be there, so that nothing happens: what fails must not be the words
      const { stderr } = await millrace([...wordsOf(example), "--store", "sqlite:/dev/null/millrace.db"])
      expect(stderr.includes("InvalidUsage") ? example : "").toBe("")
    }
  })

  it.each(ACTS)("of %s says that the operator and the reason are recorded", async (command) => {
    const text = await help(command)
    expect(text).toMatch(/--by .*recorded/u)
    expect(text).toMatch(/--reason .*recorded/u)
  })

  it("of serve lists the environment variables", async () => {
    const text = await help("serve")
    const variables = ["HOST", "PORT", "STORE", "RATE_LIMIT", "LATE", "BIN_FILE", "LOG_LEVEL", "MASTER_KEY"]
    for (const variable of variables) expect(text).toContain(`MILLRACE_${variable}`)
  })
})

describe("millrace", () => {
  it("prints the version of its package", async () => {
    const manifest = readFileSync(new URL("../package.json", import.meta.url), "utf8")
    const { version } = Schema.decodeUnknownSync(Schema.fromJsonString(Schema.Struct({ version: Schema.String })))(manifest)
    expect(await runProcess(["--version"])).toEqual({ code: 0, stdout: `millrace v${version}\n`, stderr: "" })
  })

  const under = (version: string) => {
    const pretend = `Object.defineProperty(process, "versions", { value: { ...process.versions, node: "${version}" } })
      Object.defineProperty(process, "version", { value: "v${version}" })`
    return runProcess(["--version"], { nodeArgs: ["--import", `data:text/javascript,${encodeURIComponent(pretend)}`] })
  }

  it.each(["18.20.8", "20.19.4", "22.18.0"])("refuses Node.js %s with a message", async (version) => {
    expect(await under(version)).toEqual({
      code: 1,
      stdout: "",
      stderr: `millrace needs Node.js 22.19 or newer; this is v${version}.\n`
    })
  })

  it.each(["22.19.0", "24.0.0"])("runs on Node.js %s", async (version) => {
    expect((await under(version)).code).toBe(0)
  })

  it("is refused by an old Node.js of this machine before anything else is loaded", async ({ skip }) => {
    const { code, stdout } = await runProcess([], { node: "/usr/bin/node", nodeArgs: ["--version"], script: null })
    const [, major = 0, minor = 0] = (/^v(\d+)\.(\d+)/u.exec(stdout) ?? []).map(Number)
    const isOld = code === 0 && (major < 22 || (major === 22 && minor < 19))
    skip(!isOld, "SKIPPED: /usr/bin/node is not there, or new enough")
    expect(await runProcess(["serve"], { node: "/usr/bin/node", script: bin })).toEqual({
      code: 1,
      stdout: "",
      stderr: `millrace needs Node.js 22.19 or newer; this is ${stdout.trim()}.\n`
    })
  })
})
