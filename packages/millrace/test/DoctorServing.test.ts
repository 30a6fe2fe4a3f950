/** What the doctor finds of mail, text messages and proxies that the environment sets up. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { ConfigProvider, Effect } from "effect"
import { afterAll, describe, expect, it } from "vitest"
import { millrace } from "../../../test/system/InProcess.ts"
import * as NameServer from "../../upstreams/test/dns/NameServer.ts"
import * as SelfSigned from "../../upstreams/test/mail/SelfSigned.ts"
import * as ServingChecks from "../src/ServingChecks.ts"

const folder = mkdtempSync(join(tmpdir(), "millrace-doctor-"))
afterAll(() => rmSync(folder, { recursive: true, force: true }))

const names = NameServer.zone({ "mail.example.com": [NameServer.mx("mx1.example.com")], "bare.example.com": [NameServer.a("192.0.2.1")] })

/** Each check as its name, whether it is ok, what it found, and its advice. */
const examine = (env: Readonly<Record<string, string>>) =>
  Effect.gen(function* () {
    const { address } = yield* NameServer.serve(names)
    const provider = ConfigProvider.fromEnv({ env: { MILLRACE_DNS_SERVERS: address, ...env } })
    const checks = yield* Effect.provideService(ServingChecks.checks, ConfigProvider.ConfigProvider, provider)
    return checks.map(({ advice = "", detail, name, ok }) => `${ok ? "ok" : "WRONG"} ${name}: ${detail} -> ${advice}`)
  }).pipe(Effect.scoped, Effect.runPromise)

/** The value of a setting of a certificate that ends in so many days, with a key. */
const filesOf = (name: string, days: number, key?: string): string => {
  const until = new Date(Date.now() + (days + 0.5) * 86_400_000)
    .toISOString()
    .replaceAll(/[-:T]|\.\d+/gu, "")
    .slice(2)
  const made = SelfSigned.make(name, until)
  const [cert, keyFile] = [join(folder, `${name}.pem`), join(folder, `${name}.key`)]
  writeFileSync(cert, made.cert)
  writeFileSync(keyFile, key ?? made.key)
  return `${cert},${keyFile}`
}

describe("the doctor", () => {
  it("says nothing of what is not set up", async () => {
    expect(await examine({})).toEqual([])
  })

  it.each<[Record<string, string>, string]>([
    [{ MILLRACE_MAIL_DOMAIN: "mail.example.com" }, "ok mail: mail of mail.example.com goes to mx1.example.com, which this host does not"],
    [
      { MILLRACE_MAIL_DOMAIN: "mail.example.com", MILLRACE_SMTP: "0.0.0.0:25" },
      "ok mail: mail of mail.example.com goes to mx1.example.com, received here at port 25"
    ],
    [
      { MILLRACE_MAIL_DOMAIN: "bare.example.com" },
      "WRONG mail: bare.example.com has no MX record, so no mail comes -> publish an MX record"
    ],
    [{ MILLRACE_MAIL_DOMAIN: "none.example.com" }, "WRONG mail: none.example.com has no MX record"],
    [{ MILLRACE_MAIL_DOMAIN: "mail.example.com", MILLRACE_DNS_SERVERS: "here" }, "WRONG mail: MILLRACE_DNS_SERVERS must be IP addresses"],
    [{ MILLRACE_MAIL_DOMAIN: "Example" }, "WRONG mail: MILLRACE_MAIL_DOMAIN must be a domain in lower case"],
    [{ MILLRACE_SMTP: "0.0.0.0:25" }, "WRONG mail: MILLRACE_SMTP is set, and no domain -> set MILLRACE_MAIL_DOMAIN"],
    [
      { MILLRACE_SMS_NUMBERS: "+15005550006", MILLRACE_SMS_TWILIO_TOKEN: "s3cret" },
      "ok messages: messages to +15005550006, by MILLRACE_SMS_TWILIO_TOKEN -> "
    ],
    [{ MILLRACE_SMS_NUMBERS: "+15005550006" }, "ok messages: messages to +15005550006, by nothing -> set the secret of a provider"],
    [{ MILLRACE_SMS_NUMBERS: "five" }, "WRONG messages: MILLRACE_SMS_NUMBERS must be numbers such as"],
    [{ MILLRACE_SMPP: "smpp://ada:s3cret@smsc.example.com" }, "WRONG messages: MILLRACE_SMPP without numbers -> set MILLRACE_SMS_NUMBERS"],
    [
      { MILLRACE_SMS_NUMBERS: "+15005550006", MILLRACE_SMPP: "tcp://ada:s3cret@host" },
      "WRONG messages: MILLRACE_SMPP must be such as smpp://name:password@"
    ],
    [
      { MILLRACE_SMS_NUMBERS: "+15005550006", MILLRACE_SMPP: "smpp://ada:s3cret@host", MILLRACE_SMS_URL: "http://api.example.com" },
      "ok messages: messages to +15005550006, by MILLRACE_SMPP -> MILLRACE_SMS_URL is not https"
    ],
    [{ MILLRACE_PROXY: "127.0.0.1:8080", MILLRACE_PROXY_COUNTRY: "de" }, "ok proxy: a node in DE at 127.0.0.1:8080 -> "],
    [{ MILLRACE_SOCKS: "127.0.0.1:1080" }, "WRONG proxy: a proxy node has no country -> set MILLRACE_PROXY_COUNTRY"],
    [
      { MILLRACE_PROXY: "0.0.0.0:80", MILLRACE_PROXY_COUNTRY: "DE" },
      "WRONG proxy: a proxy node listens on every address -> set MILLRACE_PROXY_HOST"
    ],
    [
      { MILLRACE_PROXY: "127.0.0.1:8080", MILLRACE_PROXY_COUNTRY: "DE", MILLRACE_PROXY_EXITS: "127.0.0.1,203.0.113.9" },
      "WRONG proxy: 203.0.113.9 is not of this machine"
    ]
  ])("says of %j what is right and wrong, and no secret", async (env, sentence) => {
    const told = await examine(env)
    expect(told).toEqual([expect.stringContaining(sentence)])
    expect(told.join()).not.toContain("s3cret")
  })

  it.each(["MILLRACE_SMTP_TLS", "MILLRACE_PROXY_TLS"])("looks at the certificate of %s", async (variable) => {
    const told = async (files: string) => (await examine({ [variable]: files }))[0]
    const name = variable === "MILLRACE_SMTP_TLS" ? "mail TLS" : "proxy TLS"
    expect(await told(filesOf("long", 90))).toBe(`ok ${name}: ${join(folder, "long.pem")} ends in 90 days -> `)
    expect(await told(filesOf("short", 13))).toBe(`ok ${name}: ${join(folder, "short.pem")} ends in 13 days -> renew it`)
    expect(await told(filesOf("over", -2))).toMatch(new RegExp(`^WRONG ${name}: .*over.pem ended on .* -> renew it`, "u"))
    expect(await told(filesOf("other", 90, SelfSigned.make().key))).toMatch(
      new RegExp(`^WRONG ${name}: the files of ${variable} cannot be used`, "u")
    )
    expect(await told(`${folder}/none.pem,${folder}/none.key`)).toMatch(/^WRONG .*cannot be used: ENOENT/u)
    expect(await told("cert.pem")).toBe(`WRONG ${name}: ${variable} must be two files, CERT,KEY -> `)
  })

  it("is told by the command, which knows of the domain and the numbers", async () => {
    const env = { MILLRACE_SMS_NUMBERS: "+15005550006", MILLRACE_MAIL_DOMAIN: "mail.example.com", MILLRACE_DNS_SERVERS: "127.0.0.1:1" }
    const { code, stdout } = await millrace(["doctor", "--store", `sqlite:${join(folder, "none.db")}`], { env })
    const { checks } = JSON.parse(stdout) as { checks: ReadonlyArray<{ name: string; ok: boolean; detail: string; advice?: string }> }
    const of = (name: string) => checks.find((check) => check.name === name)
    expect([code, of("messages")?.ok]).toEqual([1, true])
    // No name server answers
    expect(of("mail")).toMatchObject({ ok: false, detail: expect.stringContaining("127.0.0.1:1: ") })
    expect(of("upstreams")?.advice).not.toMatch(/inbox\.|verification\./u)
  })
})
