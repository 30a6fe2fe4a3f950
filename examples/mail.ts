/** A disposable inbox at a host, mail that comes to it, and a caller who waits for it: `npm run mail -w examples`. */
import { createMillrace, standard } from "millrace"
import { createTransport } from "nodemailer"

const millrace = await createMillrace({
  store: "memory:",
  standard: ["inbox"],
  mail: { domain: "inbox.localhost", listen: "127.0.0.1:0" }, // any port that is free
  providers: { dnsServers: ["127.0.0.1:1"] } // offline: SPF, DKIM and DMARC of senders cannot be checked
})
const account = await millrace.accounts.open({ email: "ada@example.com", verified: true }) // 200 credits
const { data: inbox } = await millrace.run(standard.inbox.create, { lifetime: 600, label: "sign-up 7" }, { account })

// A test over HTTP waits up to 30 seconds for the next message
const { key } = await millrace.keys.issue(account)
const headers = { authorization: `Bearer ${key}`, prefer: "wait=30" }
const waiting = millrace.fetch(new Request(`http://localhost/api/v1/temp-mail/inboxes/${inbox.inbox_id}/messages`, { headers }))

// Meanwhile a shop sends it
const shop = createTransport({ ...millrace.addresses.smtp, ignoreTLS: true })
await shop.sendMail({ from: "shop@example.com", to: inbox.address, subject: "Your link", text: "https://example.com/?token=1" })
shop.close()

const { data } = (await (await waiting).json()) as { data: { messages: ReadonlyArray<{ message_id: string; subject: string }> } }
for (const { message_id: message, subject } of data.messages) {
  const read = await millrace.run(standard.inbox.readMessage, { inbox: inbox.inbox_id, message }, { account })
  console.log(subject, read.data.text?.trim(), read.charged)
}
await millrace.close()
