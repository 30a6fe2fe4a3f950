/** Version 1 of the price plan: the prices of the service's own operations, in decimal credits for each unit. */

/** Prices by operation key. An operation of price 0 is free and leaves no event in the ledger. */
export const FIRST_PRICES: Readonly<Record<string, number>> = {
  // account, billing, catalog
  "account.billing": 0,
  "account.limits": 0,
  "billing.invoices": 0,
  "billing.subscribe": 0,
  "billing.topUp": 0,
  "billing.captureTopUp": 0,
  "catalog.read": 0,
  "catalog.capabilities": 0,
  "catalog.capability": 0,
  "catalog.config": 0,
  "catalog.groups": 0,
  "catalog.openapi": 0,

  // images and speech
  "image.generate": 8,
  "image.edit": 8,
  "image.read": 0,
  "image.cancel": 0,
  "image.download": 0,
  "speech.synthesize": 5,
  "speech.read": 0,
  "speech.cancel": 0,
  "speech.download": 0,
  "speech.voices": 0,

  // lookups
  "bin.lookup": 0.5,
  "dns.resolve": 0.5,
  "topics.list": 0.1,
  "grammar.check": 1,
  "storeCatalog.read": 1.5,
  "leads.search": 2,

  // coupons and products
  "coupons.search": 0.5,
  "coupons.requestStore": 0,
  "coupons.submit": 0,
  "priceAlerts.register": 1,
  "prices.compare": 1,
  "prices.history": 0.5,
  "selectors.find": 0,

  // e-mail validation: for each address
  "email.validate": 1,
  "email.validateBatch": 0.6,
  "email.validationJob": 0.6,
  "email.readValidationJob": 0,

  // proxies
  "proxy.locations": 0.1,
  "proxy.createSession": 2,

  // verification codes and temporary mail
  "verification.wait": 5,
  "inbox.create": 1,
  "inbox.read": 0.1,
  "inbox.listMessages": 0.1,
  "inbox.readMessage": 0.1,
  "inbox.rotate": 1,
  "inbox.delete": 0,

  // readers of public data
  "codeHost.user": 0.5,
  "codeHost.searchRepositories": 0.5,
  "codeHost.activity": 0.5,
  "codeHost.repository": 0.5,
  "video.stats": 0.5,
  "video.channelVideos": 0.5,
  "video.outliers": 1,
  "video.search": 0.5,
  "video.download": 1,
  "video.comments": 1,
  "video.about": 0.5,
  "video.playlist": 0.3,
  "video.tags": 0.5,
  "video.details": 1
}
