/** A sender of a mail benchmark that has set everything up: a message that it signed, and the records of its domain. */
import { generateKeyPairSync } from "node:crypto"
import { Dns, NotFound } from "@millrace/core"
import { Effect, Layer } from "effect"
import { createTransport } from "nodemailer"

const BYTES = 5_000
const DOMAIN = "shop.example"
const SELECTOR = "k1"
export const SENDER = `shop@${DOMAIN}`

const { privateKey, publicKey } = generateKeyPairSync("rsa", { modulusLength: 2_048 })

const records: Readonly<Record<string, string>> = {
  [DOMAIN]: "v=spf1 ip4:127.0.0.1 -all",
  [`${SELECTOR}._domainkey.${DOMAIN}`]: `v=DKIM1; k=rsa; p=${publicKey.export({ type: "spki", format: "der" }).toString("base64")}`,
  [`_dmarc.${DOMAIN}`]: "v=DMARC1; p=reject"
}

/** Answers at once: what name servers take is not the server's. */
export const dns = Layer.succeed(Dns.DnsResolver, {
  resolve: ({ domain, type }) => {
    const text = records[domain]
    return type === "TXT" && text !== undefined
      ? Effect.succeed({ domain, type, records: [{ ttl: 300, text }] })
      : Effect.fail(new NotFound({ resource: "domain" }))
  }
})

/** A message of 5 kB with one signature of RSA, as it stands between DATA and the final dot. */
export const message = async (): Promise<string> => {
  const dkim = { domainName: DOMAIN, keySelector: SELECTOR, privateKey: privateKey.export({ type: "pkcs8", format: "pem" }).toString() }
  const sent = await createTransport({ streamTransport: true, buffer: true, newline: "windows" }).sendMail({
    from: `Shop <${SENDER}>`,
    to: "anna@mail.example.com",
    subject: "Your code",
    text: `${"x".repeat(74)}\r\n`.repeat(BYTES / 76 - 12),
    dkim
  })
  return String(sent.message)
}
