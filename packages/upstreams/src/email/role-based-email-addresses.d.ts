/** The package has no types of its own. */
declare module "role-based-email-addresses" {
  const addresses: ReadonlyArray<string>
  export = addresses
}
