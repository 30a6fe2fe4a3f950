/** Gateways that take money: Stripe and PayPal. */
export * as PayPal from "./PayPal.ts"
export * as Stripe from "./Stripe.ts"
