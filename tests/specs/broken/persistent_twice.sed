s/persistent persistent/persistent/
