/** Invoices of a real server: as JSON, as a page in a real browser, and on paper. */
import { expect, test } from "vitest"
import { barriersOn, openBrowser, visit } from "./Browser.ts"
import { millrace } from "./InProcess.ts"
import { auditOf, call, header, newStore, openAccount, problemOf, serve, UNLIMITED } from "./Server.ts"

const SELLER = "Mill Ltd\\n1 Mill Lane, York\\nVAT ID GB123456789"

test("a payment that is approved has an invoice, which prints to one page, and a refund has a credit note", {
  timeout: 120_000
}, async () => {
  const { url: store } = newStore()
  const [mine, others] = [await openAccount(store, 1), await openAccount(store, 1)]
  const server = await serve(["--store", store, "--payments", "manual", "--payment-tax", "VAT 19% DE", "--invoice-seller", SELLER], {
    env: UNLIMITED
  })
  const api = async (path: string, options: Parameters<typeof call>[1] = {}) =>
    call(`${server.url}/api/v1${path}`, { key: mine.key, ...options })
  const invoices = async () => JSON.parse((await api("/billing/invoices")).body)

  expect((await invoices()).data).toEqual({ invoices: [] })
  const { payment_id } = JSON.parse((await api("/billing/topups", { method: "POST", body: `{"pack":"25"}` })).body).data
  for (const args of [["approve"], ["refund", "--money", "10.01"]])
    expect(await millrace(["payments", ...args, payment_id, "--store", store])).toMatchObject({ code: 0, stderr: "" })

  const { data } = await invoices()
  const month = new Date().toISOString().slice(0, 7)
  const [credited, invoiced] = data.invoices
  const [second] = JSON.parse((await api("/billing/invoices?per_page=1&page=2")).body).data.invoices
  expect(second).toEqual(invoiced)
  expect(header(await api("/billing/invoices?per_page=1"), "link")).toContain(`per_page=1&page=2>; rel="next"`)
  expect(invoiced).toMatchObject({
    ...{ number: `INV-${month}-000001`, kind: "invoice", currency: "USD", total: 25, tax: 3.99, status: "partly_refunded", payment_id },
    ...{ invoice: null, lines: [{ description: "25000 credits", net: 21.01, tax: 3.99, total: 25, tax_rate: 19 }] },
    url: `/api/v1/billing/invoices/INV-${month}-000001`
  })
  expect(credited).toMatchObject({
    ...{ number: `CN-${month}-000001`, kind: "credit_note", total: 10.01, tax: 1.6, status: "issued", invoice: invoiced.number },
    lines: [{ description: "Refund", net: 8.41, tax: 1.6, total: 10.01 }]
  })

  // Nobody else reads it, and a number that is none is no page
  const foreign = await call(`${server.url}${invoiced.url}`, { key: others.key })
  expect([foreign.status, problemOf(foreign).code]).toEqual([404, "not_found"])
  for (const wrong of ["INV-2020-01-000001", "INV", "..%2F..%2Fready"]) expect((await api(`/billing/invoices/${wrong}`)).status).toBe(404)
  expect((await api("/billing/invoices?page=0")).status).toBe(422)

  const html = await call(`${server.url}${invoiced.url}`, { key: mine.key })
  expect(header(html, "content-type")).toBe("text/html; charset=utf-8")
  expect(header(html, "content-disposition")).toBe(`inline; filename="${invoiced.number}.html"`)
  expect(header(html, "content-security-policy")).toMatch(/^default-src 'none'; style-src 'sha256-[\w+/=]+'; base-uri 'none'/u)
  expect(html.body).not.toContain("<script")

  const browser = await openBrowser()
  for (const [width, number] of [
    [1280, invoiced.number],
    [360, credited.number]
  ]) {
    const { page, wrongs } = await visit(browser, server.url, {
      viewport: { width, height: 900 },
      extraHTTPHeaders: { authorization: `Bearer ${mine.key}` }
    })
    await page.goto(`${server.url}/api/v1/billing/invoices/${number}`)
    await page.getByRole("heading", { level: 1 }).waitFor()
    expect(await barriersOn(page)).toEqual([])
    expect(await page.evaluate("document.documentElement.scrollWidth - innerWidth <= 0")).toBe(true)
    expect(await page.evaluate("getComputedStyle(document.querySelector('main')).maxWidth")).not.toBe("none")
    const pdf = await page.pdf({ preferCSSPageSize: true })
    expect(pdf.toString("latin1").match(/\/Type\s*\/Page\b/gu)).toHaveLength(1)
    expect(wrongs).toEqual([])
  }

  await server.stop()
  expect((await auditOf(store)).problems).toEqual([])
})
