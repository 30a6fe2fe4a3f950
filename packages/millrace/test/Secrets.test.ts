/** A wrong value of a setting that may hold a password or a token is told by the name of the setting, and never shown. */
import { Schema } from "effect"
import { describe, expect, it } from "vitest"
import { millrace } from "../../../test/system/InProcess.ts"
import { type Environment, newStore, runProcess } from "../../../test/system/Server.ts"

const SECRET = "hunter2-open-sesame"
const MASTER = "ab".repeat(32)
const BASE = { MILLRACE_PORT: "0", MILLRACE_MASTER_KEY: MASTER }

/** Values that are refused, of each flag of the server that may hold a secret; `says` tells what is expected. */
const WRONG: Readonly<Record<string, { readonly values: ReadonlyArray<string>; readonly says: RegExp; readonly with?: Environment }>> = {
  store: {
    values: [`mysql://u:${SECRET}@h/db`, `postgres:${SECRET}`, `postgres://u:${SECRET}@h:x/db`, `kurrentdb://u:${SECRET}@h:x`, SECRET],
    says: /./u
  },
  state: { values: [`mysql://u:${SECRET}@h/db`, SECRET], says: /sqlite:PATH/u, with: { MILLRACE_STORE: "kurrentdb://127.0.0.1:1" } },
  blobs: { values: [`s3://u:${SECRET}@h`, `s3:${SECRET}`], says: /s3:/u },
  speech: { values: [`openai:ftp://u:${SECRET}@h`, `openai:${SECRET}`, SECRET], says: /openai:https:/u },
  images: { values: [`openai:ftp://u:${SECRET}@h`, `comfyui:${SECRET}`, SECRET], says: /openai:https:/u },
  translate: { values: [`ftp://u:${SECRET}@h`, `http://u:${SECRET}@`, SECRET], says: /https:/u },
  "map-search": { values: [`osm:ftp://u:${SECRET}@h`, `places:${SECRET}`, SECRET], says: /osm:https:/u },
  overpass: { values: [`ftp://u:${SECRET}@h`, SECRET], says: /https:/u },
  "code-host": { values: [`ftp://u:${SECRET}@h`, `http://u:${SECRET}@`, SECRET], says: /https:/u },
  "youtube-url": { values: [`ftp://u:${SECRET}@h`, SECRET], says: /https:/u },
  smpp: {
    values: [`http://u:${SECRET}@h`, `smpp:u:${SECRET}@h`, `smpp://u:${SECRET}@h:x`, `smpp://u:${SECRET}%@h`, SECRET],
    says: /smpp:\/\/name:password@/u
  },
  "sms-url": { values: [`ftp://u:${SECRET}@h`, `https://u:${SECRET}@h:x`, SECRET], says: /https:/u },
  "mail-relay": {
    values: [`http://u:${SECRET}@h`, `smtp:u:${SECRET}@h`, `smtp://u:${SECRET}@h:x`, SECRET],
    says: /smtp:\/\/name:password@/u
  },
  "public-url": { values: [`ftp://u:${SECRET}@h`, `https://u:${SECRET}@h`, `https://h/?token=${SECRET}`, SECRET], says: /https:/u },
  "proxy-upstreams": {
    values: [`http://u:${SECRET}@h:8080 country=DE`, SECRET],
    says: /cannot be read: ENOENT/u,
    with: { MILLRACE_PROXY: "127.0.0.1:0" }
  }
}

/** They take any text, so that only none, or two, are refused. */
const TOKENS = ["sms-twilio-token", "sms-plivo-token", "sms-vonage-secret", "sms-messagebird-key"]

const Told = Schema.fromJsonString(Schema.Struct({ error: Schema.Struct({ code: Schema.String, message: Schema.String }) }))

const variableOf = (flag: string): string => `MILLRACE_${flag.toUpperCase().replaceAll("-", "_")}`

/** The failure of a server that does not start, which holds no secret. */
const refused = async (args: ReadonlyArray<string>, env: Environment): Promise<string> => {
  const { code, stderr, stdout } = await millrace(["serve", ...args], { env: { ...BASE, MILLRACE_STORE: newStore().url, ...env } })
  expect({ args, code, stdout }).toEqual({ args, code: 1, stdout: "" })
  expect(stderr).not.toContain(SECRET)
  return Schema.decodeUnknownSync(Told)(stderr).error.message
}

describe("a wrong value of a setting that may hold a secret", () => {
  it.each(Object.entries(WRONG))("--%s", { timeout: 60_000 }, async (flag, { says, values, with: env = {} }) => {
    for (const value of values) {
      const told = [await refused([`--${flag}`, value], env), await refused([], { ...env, [variableOf(flag)]: value })]
      for (const message of told) expect(message).toMatch(says)
      // What a database says of its address is told as it is
      if (!/^(?:postgres|kurrentdb):\/\//u.test(value)) for (const message of told) expect(message).toContain(`--${flag}`)
    }
  })

  it.each(TOKENS)("--%s", async (flag) => {
    expect(await refused([`--${flag}`, SECRET, `--${flag}`, SECRET], {})).toMatch(new RegExp(`--${flag}.*at most 1 value`, "u"))
    expect(await refused([`--${flag}=`], {})).toMatch(new RegExp(`Missing value for flag --${flag}`, "u"))
  })

  it("whose flag was forgotten or misspelt", async () => {
    const address = `smpp://u:${SECRET}@h`
    expect(await refused([address], {})).toMatch(/Unexpected positional argument: "smpp:\/\/\*\*\*"/u)
    expect(await refused([`--smp=${address}`], {})).toMatch(/Unrecognized flag: --smp/u)
    const { stderr } = await millrace([address])
    expect(stderr).toMatch(/Unknown subcommand \\"smpp:\/\/\*\*\*\\"/u)
  })

  it("by a variable of a command without the flag", async () => {
    const env = { ...BASE, MILLRACE_SPEECH: SECRET, MILLRACE_IMAGES: `ftp://u:${SECRET}@h`, MILLRACE_STORE: newStore().url }
    const { stderr, stdout } = await millrace(["doctor"], { env })
    expect(stdout + stderr).toMatch(/MILLRACE_SPEECH names no provider: give espeak/u)
    expect(stdout + stderr).not.toContain(SECRET)
  })

  it("is tried here for every flag of the server that takes a secret or an address", async () => {
    const { stdout } = await runProcess(["serve", "--help"])
    const flags = [...stdout.matchAll(/--(?<flag>[a-z-]+) (?<metavar>\S*(?:url|secret)\S*)/gu)].map(({ groups }) => groups?.["flag"] ?? "")
    const tried = new Set([...Object.keys(WRONG), ...TOKENS])
    expect(flags.length).toBeGreaterThan(5)
    expect(flags.filter((flag) => !tried.has(flag))).toEqual([])
  })
})
