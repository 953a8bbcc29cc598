"""Removal of names and secrets from documents before they are indexed.

The policy. Names of people whom a source knows become “Person 1”, “Person 2”, … in order of appearance, the same person
the same within a document; so do their user names and e-mail addresses. Any other e-mail address becomes “[e-mail]”, a
telephone number that is marked as one “[phone]”, a password, key or token “[secret]”. Addresses of machines (IP, host,
`user@host` of a command) stay: runbooks are about them. So does everything that only looks like one of these:
identifiers, commands, versions, hashes of commits and images, references to a secret's place. Names of people whom no
source and no setting names are not looked for: a guess would destroy more runbooks than it protects people.
"""
