/** What names one product, in a form in which two names of the same product are equal. */
import normalizeUrl from "normalize-url"
import { getDomain } from "tldts"

export interface ProductNames {
  /** An http or https URL. */
  readonly url?: string | undefined
  readonly asin?: string | undefined
  readonly sku?: string | undefined
  readonly variant_id?: string | undefined
  readonly store_id?: string | undefined
}

/** Parameters that say where a visitor came from. */
const TRACKING = [/^utm_/iu, /^(?:gclid|gbraid|wbraid|fbclid|msclkid|ttclid|yclid|mc_cid|mc_eid|ref|ref_|tag|linkCode|ascsubtag)$/u]

/** Without scheme, `www.`, fragment and tracking; parameters in order. Undefined for what is no URL. */
export const normalisedUrl = (url: string): string | undefined => {
  try {
    return normalizeUrl(url, { stripProtocol: true, stripHash: true, removeQueryParameters: TRACKING, sortQueryParameters: true })
  } catch {
    return undefined
  }
}

/**
 * The identity by the most specific name that is given: the ASIN, the variant of a store, the SKU, the URL. The store is `store_id`, or the
 * registrable domain of the URL. Undefined if nothing names a product.
 */
export const identityOf = ({ asin, sku, store_id, url, variant_id }: ProductNames): string | undefined => {
  const store = store_id?.toLowerCase() ?? (url === undefined ? undefined : (getDomain(url, { allowPrivateDomains: true }) ?? undefined))
  if (asin !== undefined) return JSON.stringify(["asin", asin.toUpperCase()])
  if (variant_id !== undefined && store !== undefined) return JSON.stringify(["variant", store, variant_id])
  if (sku !== undefined) return JSON.stringify(["sku", store ?? null, sku])
  const normal = url === undefined ? undefined : normalisedUrl(url)
  return normal === undefined ? undefined : JSON.stringify(["url", normal])
}
