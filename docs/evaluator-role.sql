-- Rights of the evaluator's database role: it reads problems and submissions, and writes attempts, their states and
-- scores. It sees no account, token, session or appeal. Run it as the owner of the tables, after each migrate:
-- psql "$DATABASE_URL" -f docs/evaluator-role.sql
DO $$
DECLARE found record;
BEGIN
  FOR found IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP
    IF found.tablename ~ '^(evaluator|leaderboard)_' THEN
      EXECUTE format('GRANT SELECT, INSERT, UPDATE, DELETE ON %I TO pkb_evaluator', found.tablename);
    ELSIF found.tablename ~ '^problems_' OR found.tablename IN (
      'submissions_submission', 'submissions_modelrun', 'submissions_entrant', 'submissions_auditevent'
    ) THEN
      EXECUTE format('GRANT SELECT ON %I TO pkb_evaluator', found.tablename);
    END IF;
  END LOOP;
  EXECUTE format('GRANT USAGE ON ALL SEQUENCES IN SCHEMA %I TO pkb_evaluator', current_schema());
END $$;
GRANT UPDATE ON submissions_submission TO pkb_evaluator;
GRANT INSERT ON submissions_auditevent TO pkb_evaluator;
