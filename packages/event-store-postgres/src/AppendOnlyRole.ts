/**
 * The script that makes a role for the host. The role can do everything that the stores do. It cannot change or remove an event, or drop
 * the trigger that prevents this. Run the script as the owner of the schema, after the stores were opened once as that owner.
 */
export const script = ({ schema = "millrace", role }: { readonly schema?: string; readonly role: string }): string => `\
CREATE ROLE ${role} LOGIN;
ALTER ROLE ${role} SET default_transaction_isolation = 'read committed';
ALTER ROLE ${role} SET statement_timeout = '15s';
GRANT USAGE ON SCHEMA ${schema} TO ${role};
GRANT SELECT ON ${schema}.migrations TO ${role};
GRANT SELECT, INSERT ON ${schema}.events, ${schema}.streams TO ${role};
GRANT SELECT, INSERT, UPDATE ON ${schema}.snapshots TO ${role};
DO $$ BEGIN
  IF to_regclass('${schema}.entries') IS NOT NULL THEN
    GRANT SELECT, INSERT, UPDATE, DELETE ON ${schema}.entries TO ${role};
    GRANT USAGE ON SEQUENCE ${schema}.versions TO ${role};
  END IF;
  IF to_regclass('${schema}.text_documents') IS NOT NULL THEN
    GRANT SELECT, INSERT, UPDATE, DELETE ON ${schema}.text_indexes, ${schema}.text_documents TO ${role};
  END IF;
END $$;
`
