/** The worker thread that judges messages, any number at once: receives `ToThread`, posts `FromThread`. Its host asks name servers for it. */
import { parentPort } from "node:worker_threads"
import type { Authentication } from "@millrace/core"
import { type AuthenticateResult, authenticate, type DNSResolver } from "mailauth"
import { linesOf } from "./Lines.ts"
import { type DnsOutcome, type DnsValue, type FromThread, IN_DOUBT, type Received, type ToThread, UNCHECKED } from "./VerdictMessages.ts"

/** Real messages carry fewer. */
const MAX_SIGNATURES = 12

/** Of all headers. The library unfolds them in a time that grows with the square of their lines. */
const MAX_HEADER_LINES = 2_000
const MAX_HEADER_BYTES = 256 * 1024

/**
 * Each signature reads the whole message once more, and the library blocks this thread meanwhile: about 10 ns for a byte at worst, and as
 * long as for 65 bytes for each line. So the checks of a message block the checks of others for a third of a second at most.
 */
const MAX_WORK = 30_000_000
const BYTES_OF_LINE = 65

/** Questions of a check. A real message asks fewer than 30; those that follow fail. */
const MAX_QUESTIONS = 100

const SIGNATURE = /^(?:dkim-signature|arc-message-signature)[ \t]*:/gimu

const asksTooMuch = (bytes: Buffer): boolean => {
  const end = bytes.indexOf("\r\n\r\n")
  const headers = end === -1 ? bytes.length : end
  if (headers > MAX_HEADER_BYTES || linesOf(bytes.subarray(0, headers)) > MAX_HEADER_LINES) return true
  const signatures = bytes.toString("latin1", 0, headers).match(SIGNATURE)?.length ?? 0
  return signatures > MAX_SIGNATURES || signatures * (bytes.length + BYTES_OF_LINE * linesOf(bytes)) > MAX_WORK
}

/** Never rejects: the library throws on what it does not foresee, and a message is not lost for that. */
const verdictsOf = async ({ helo, ip, raw, sender }: Received, resolver: DNSResolver): Promise<Authentication> => {
  const bytes = Buffer.from(raw.buffer, raw.byteOffset, raw.byteLength)
  if (asksTooMuch(bytes)) return UNCHECKED
  try {
    return shown(await authenticate(bytes, { ip, helo, ...(sender === null ? {} : { sender }), disableBimi: true, resolver }))
  } catch {
    return IN_DOUBT
  }
}

const shown = ({ spf, dkim, dmarc, arc }: AuthenticateResult): Authentication => {
  const signatures = dkim.results.map(({ status }) => status.result)
  return {
    spf: spf === false ? null : spf.status.result,
    // One signature that holds is enough (RFC 6376, section 6.1)
    dkim: signatures.find((result) => result === "pass") ?? signatures[0] ?? "none",
    dmarc: dmarc === false ? null : dmarc.status.result,
    arc: arc === false ? null : arc.status.result
  }
}

/** The open questions of each check, by number. */
const checks = new Map<number, Map<number, (outcome: DnsOutcome) => void>>()

const post = (message: FromThread): void => parentPort?.postMessage(message)

const failure = (code: string): Error => Object.assign(new Error(code), { code })

/** The library's type forgets that exchanges are objects. */
const resolverOf = (id: number, open: Map<number, (outcome: DnsOutcome) => void>): DNSResolver => {
  let asked = 0
  return ((domain: string, type: string) =>
    new Promise<ReadonlyArray<DnsValue>>((resolve, reject) => {
      const question = ++asked
      if (question > MAX_QUESTIONS) return reject(failure("ESERVFAIL"))
      open.set(question, (outcome) => {
        open.delete(question)
        if ("values" in outcome) resolve(outcome.values)
        else reject(failure(outcome.code))
      })
      post({ id, question, domain, type })
    })) as unknown as DNSResolver
}

const check = async (id: number, message: Received): Promise<void> => {
  const open = new Map<number, (outcome: DnsOutcome) => void>()
  checks.set(id, open)
  const verdicts = await verdictsOf(message, resolverOf(id, open))
  checks.delete(id)
  post({ id, verdicts })
}

parentPort?.on("message", (message: ToThread) => {
  if ("message" in message) return void check(message.id, message.message)
  const open = checks.get(message.id)
  if ("outcome" in message) open?.get(message.question)?.(message.outcome)
  else for (const end of open?.values() ?? []) end({ code: "ESERVFAIL" })
})
parentPort?.postMessage("ready")
