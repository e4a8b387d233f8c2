"""Defects of the app: doors left open, and charges that nobody confirmed."""

from tests.mutants.mutant import Mutant

DOOR, PAGES = "tests/unit/app/test_door.py", "tests/unit/app/test_pages.py"

MUTANTS = (
    Mutant(
        name="the app answers to every host",
        why="a page that rebinds its name to this machine reads the ledger and spends it",
        file="app/door.py",
        before='if headers.get("host") != self.host:',
        after="if False:",
        tests=(f"{DOOR}::test_a_post_from_anywhere_else_is_refused",),
    ),
    Mutant(
        name="the app takes forms of other origins",
        why="any page in the same browser can spend the budget",
        file="app/door.py",
        before="if origin is not None and origin != self.origin:",
        after="if False:",
        tests=(f"{DOOR}::test_a_post_from_anywhere_else_is_refused",),
    ),
    Mutant(
        name="the app takes forms without their token",
        why="a form of another page spends the budget where the origin is not sent",
        file="app/answering.py",
        before="if not is_own_form(request.scope, form, request.headers):",
        after="if False:",
        tests=(f"{DOOR}::test_a_post_without_the_token_of_its_browser_is_refused",),
    ),
    Mutant(
        name="a link to the app works for ever",
        why="whoever reads it in a history or a list of processes comes in",
        file="app/door.py",
        before="self._token, cookie = secrets.token_urlsafe(32), secrets.token_urlsafe(32)",
        after="cookie = secrets.token_urlsafe(32)",
        tests=(f"{DOOR}::test_a_link_works_once_and_the_next_is_announced",),
    ),
    Mutant(
        name="the app follows links out of its project",
        why="tables of others are read, and schemas written beside them",
        file="app/project.py",
        before="found = (self.folder / text.strip()).resolve()",
        after="found = (self.folder / text.strip()).absolute()",
        tests=(f"{PAGES}::test_no_path_leads_out_of_the_project_or_into_what_is_hidden",),
    ),
    Mutant(
        name="the app charges without the name that was to be typed",
        why="one click spends what these people never get back",
        file="app/pages.py",
        before='if ask["name"].strip() != found.name:',
        after="if False:",
        tests=(f"{PAGES}::test_a_run_needs_the_name_of_its_population",),
    ),
    Mutant(
        name="a form that is sent twice charges twice",
        why="a reloaded page or a double click spends the budget again",
        file="app/jobs.py",
        before="job = cls(project, name)\n        if sum(",
        after="job = cls(project, os.urandom(16).hex())\n        if sum(",
        tests=(f"{PAGES}::test_a_form_that_is_sent_twice_starts_one_run",),
    ),
)
