/** The fields of answers that the specification names, as the OpenAPI document that is served describes them. Further ones are allowed. */
import { Effect } from "effect"
import { expect, test } from "vitest"
import { host } from "./Host.ts"
import { send } from "./Requests.ts"
import { rows } from "./Rows.ts"

interface Schema {
  readonly $ref?: string
  readonly type?: string | ReadonlyArray<string>
  readonly properties?: Readonly<Record<string, Schema>>
  readonly required?: ReadonlyArray<string>
  readonly items?: Schema
  readonly anyOf?: ReadonlyArray<Schema>
}

/** By the key of the row. `a.b` is the field of an object, `a[]` each element of a list. */
const FIELDS: Readonly<Record<string, ReadonlyArray<string>>> = {
  "coupons.search": [
    ...["domain", "store_name", "total_coupons", "cashback.active", "cashback.min_percent", "cashback.max_percent", "affiliate_url"],
    ...["code", "description", "discount_text", "rank", "success_count", "last_discount", "expires_at", "source"].map(
      (name) => `coupons[].${name}`
    )
  ],
  "priceAlerts.register": ["status", "product_base_id", "target_price"],
  "prices.compare": ["query", "total_matches", "items[]"],
  "prices.history": [
    ...["variant_id", "store_id", "timeframe", "current_price", "lowest_price", "highest_price", "drop_amount", "drop_percent"],
    ...["total_changes", "points_count", "history[].date", "history[].low", "history[].high"]
  ],
  "selectors.find": ["selector_name", "selectors[]", "available"],
  "storeCatalog.read": [
    ...["domain", "total_products", "price_range.min", "price_range.max", "price_range.avg"],
    ...["id", "title", "handle", "published_at", "price"].map((name) => `newest_product.${name}`),
    ...["id", "title", "handle", "vendor", "product_type", "created_at", "published_at", "images[]"].map((name) => `products[].${name}`),
    ...["id", "title", "price", "sku", "available"].map((name) => `products[].variants[].${name}`)
  ],
  "leads.search": [
    ...["platform", "type", "kind", "total", "query.query", "query.hl", "query.with_phone", "query.with_website"],
    ...["platform", "type", "id", "url", "title", "text", "thumbnail_url", "published_at", "author.name", "author.url"].map(
      (name) => `items[].${name}`
    ),
    ...["views", "likes", "dislikes", "replies", "shares", "rating"].map((name) => `items[].stats.${name}`),
    ...["category", "categories[]", "reviews_count", "phone", "has_phone", "website", "has_website"].map((name) => `items[].extra.${name}`),
    ...["latitude", "longitude", "place_id", "cid"].map((name) => `items[].extra.${name}`)
  ]
}

test.each(Object.entries(FIELDS))("%s answers with each field that the specification names", (key, fields) =>
  Effect.gen(function* () {
    const { url } = yield* host
    const row = (wanted: string) => {
      const found = rows.find(({ key }) => key === wanted)
      if (found === undefined) throw new Error(`There is no row ${wanted}`)
      return found
    }
    const { body } = yield* Effect.promise(() => send(url, row("catalog.openapi"), {}))
    const { components, paths } = JSON.parse(body)

    /** The object or list that a schema allows, whatever else it allows. */
    const resolved = (schema: Schema | undefined): Schema => {
      const [, name = ""] = /^#\/components\/schemas\/([\w.-]+)$/u.exec(schema?.$ref ?? "") ?? []
      if (schema?.$ref !== undefined) return resolved(components.schemas[name])
      return schema?.anyOf?.map(resolved).find(({ items, properties }) => (items ?? properties) !== undefined) ?? schema ?? {}
    }
    const field = (schema: Schema, name: string): Schema | undefined => {
      const { properties, required = [] } = resolved(schema)
      return required.includes(name) ? properties?.[name] : undefined
    }
    const answered = ({ key, method, path, status }: ReturnType<typeof row>): Schema => {
      const response = paths[path][method.toLowerCase()].responses[status]
      const { schema } = response.content["application/json"]
      return field(schema, "data") ?? expect.fail(`${key} has no data`)
    }
    const lacks = (path: string): boolean => {
      let at: Schema | undefined = answered(row(key))
      for (const step of path.split(".")) {
        const name = step.replace("[]", "")
        at = at === undefined ? undefined : field(at, name)
        if (at !== undefined && name !== step) at = resolved(at).items
      }
      return at === undefined
    }
    expect(fields.filter(lacks)).toEqual([])
  }).pipe(Effect.scoped, Effect.runPromise)
)
