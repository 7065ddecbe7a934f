-- Rights of the evaluator's database role: it reads problems and submissions, and writes attempts, their states and
-- scores. It sees no account, token, session or appeal. Run it as the owner of the tables, after each migrate:
-- psql "$DATABASE_URL" -f docs/evaluator-role.sql
-- What it held before is taken back first, in the same transaction: a worker that runs meanwhile notices nothing.
DO $$
DECLARE found record;
BEGIN
  EXECUTE format('REVOKE ALL ON ALL TABLES IN SCHEMA %I FROM pkb_evaluator', current_schema());
  EXECUTE format('REVOKE ALL ON ALL SEQUENCES IN SCHEMA %I FROM pkb_evaluator', current_schema());
  FOR found IN SELECT tablename FROM pg_tables WHERE schemaname = current_schema() LOOP
    IF found.tablename ~ '^evaluator_' OR found.tablename IN (
      'leaderboard_boardcell', 'leaderboard_runsummary', 'leaderboard_boardversion'
    ) THEN
      EXECUTE format('GRANT SELECT, INSERT, UPDATE ON %I TO pkb_evaluator', found.tablename);
    ELSIF found.tablename ~ '^problems_' OR found.tablename IN (
      'submissions_submission', 'submissions_modelrun', 'submissions_entrant'
    ) THEN
      EXECUTE format('GRANT SELECT ON %I TO pkb_evaluator', found.tablename);
    END IF;
  END LOOP;
  -- A verdict, not who sent what, who may see it and whether it was removed.
  GRANT UPDATE (state, stage, verdict, code, message, queued_at, started_at, finished_at)
    ON submissions_submission TO pkb_evaluator;
  -- A score once written is held, confirmed or superseded; its figures stay.
  GRANT SELECT, INSERT ON leaderboard_score TO pkb_evaluator;
  GRANT UPDATE (provisional, tries, confirmed_at, superseded_at) ON leaderboard_score TO pkb_evaluator;
  -- Reasons hold what appeals say: of its own rows it gets back the id that an INSERT returns, and reads no more.
  GRANT INSERT, SELECT (id) ON submissions_auditevent TO pkb_evaluator;
END $$;
