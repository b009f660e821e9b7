print("receiver")
