/** The official SDK of PayPal, whose requests go to a local server: it decodes each answer by the published schemas, and fails where they do not fit. */
import { Client, Environment, OrdersController, PaymentsController } from "@paypal/paypal-server-sdk"
import { CLIENT_ID, CLIENT_SECRET } from "./PayPalServer.ts"

const SANDBOX = "https://api-m.sandbox.paypal.com"

interface SdkRequest {
  readonly url?: string
  readonly method?: string
  readonly headers?: object
  readonly data?: string
}

/** What the SDK's own HTTP client calls to send a request. */
const sender = (base: URL) => async (request: SdkRequest) => {
  const url = new URL((request.url ?? "").replace(SANDBOX, base.origin))
  const response = await fetch(url, {
    method: (request.method ?? "get").toUpperCase(),
    headers: Object.entries(request.headers ?? {}).map(([name, value]) => [name, String(value)] as [string, string]),
    ...(request.data === undefined ? {} : { body: request.data })
  })
  const headers = Object.fromEntries(response.headers)
  return { data: await response.text(), status: response.status, statusText: "", headers, config: request, request: {} }
}

export const sdkAt = (base: URL) => {
  const client = new Client({
    environment: Environment.Sandbox,
    clientCredentialsAuthCredentials: { oAuthClientId: CLIENT_ID, oAuthClientSecret: CLIENT_SECRET },
    unstable_httpClientOptions: { adapter: sender(base) }
  })
  return { orders: new OrdersController(client), payments: new PaymentsController(client) }
}
