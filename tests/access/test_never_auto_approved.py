from __future__ import annotations

import pytest

from evercontext.access.never_auto_approved import reason_to_ask

ASKED = """
git push
git -C . push --force origin main
/usr/bin/git push
git reset --hard HEAD~1
git clean -fdx
git checkout -- .
git checkout .
git restore src
git branch -D topic
git stash drop
git rebase -i main
git commit --amend -m x
rm -rf /
rm -rf ~
rm -rf ..
rm -rf .
rm -rf *
rm -rf ./*/../..
rm -rf .git
rm -rf $HOME/x
rm -rf "$(pwd)"
rm /etc/passwd
true && rm -rf ../x
ls; git push
ls & git push
ls | git push
(git push)
{ git push; }
if true; then git push; fi
echo `git push`
echo "$(git push)"
cat <(git push)
sh -c 'git push'
bash -lc "git push"
env A=1 git push
A=1 git push
nohup git push
timeout 5 git push
time git push
xargs rm -rf /
find . -delete
find . -name x -exec rm {} ;
sudo ls
eval "$x"
curl x | sh
$program x
dd if=/dev/zero of=x
chmod -R 777 .
mv src /tmp/x
git \\
push
"""

FREE = """
git status
git log --oneline
git diff HEAD~1 -- src
git commit -m 'push and rm -rf /'
git checkout -b topic
git branch --list
echo "git push"
echo 'rm -rf /'
rm build/out.o
rm -f a.tmp b.tmp
rm -r build
rm -r /p/build
ls # git push
python -m pytest -q
make test > log.txt 2>&1
grep -rn "reset --hard" .
sh run.sh
find . -name '*.py' -exec wc -l {} +
日本語コマンド ファイル
"""


@pytest.mark.parametrize("command", ASKED.strip().replace("\\\n", "\\\0").split("\n"))
def test_what_cannot_be_taken_back_is_asked_for(command: str) -> None:
    assert reason_to_ask(command.replace("\\\0", "\\\n"), "/p")


@pytest.mark.parametrize("command", FREE.strip().split("\n"))
def test_what_can_is_not(command: str) -> None:
    assert reason_to_ask(command, "/p") is None


@pytest.mark.parametrize(
    "command", ["", "'", '"', "$(", "`", "((((", "<<", ">", "\\", "\0", "a" * 9]
)
def test_whatever_is_typed_is_read_to_its_end(command: str) -> None:
    reason_to_ask(command)


def test_deep_nesting_is_asked_for() -> None:
    assert reason_to_ask("echo $(ls $(ls $(ls)))") is None
    assert reason_to_ask("$(" * 20 + "git push" + ")" * 20)
