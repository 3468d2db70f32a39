-- Who spoke, where the role does not say it: kana, yuno, system. Empty: the role itself.
ALTER TABLE messages ADD COLUMN message_type TEXT;
