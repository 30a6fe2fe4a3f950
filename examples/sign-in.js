// A host on Express whose customers sign up by themselves: `npm run sign-in -w examples` serves it at http://127.0.0.1:8787/console.
import express from "express"
import { createMillrace } from "millrace"

export const start = async ({ store = "memory:", port = 8787, send = print } = {}) => {
  const app = express()
  const server = app.listen(port, "127.0.0.1")
  await new Promise((resolve) => server.once("listening", resolve))
  const publicUrl = `http://127.0.0.1:${server.address().port}`
  const millrace = await createMillrace({
    store,
    standard: ["account", "bin", "keys"],
    signIn: { publicUrl, mailRelay: send, service: "Acme" },
    webTool: "/console"
  })
  app.use(millrace.handler)
  const stop = () => new Promise((resolve) => server.close(resolve)).then(millrace.close)
  return { url: publicUrl, millrace, stop }
}

// A real host gives its relay in place of this: mailRelay: process.env.MAIL_RELAY
const print = ({ to, subject, text }) => console.log(`Mail to ${to}: ${subject}\n\n${text}`)

if (import.meta.main) console.log(`Open ${(await start()).url}/console`)
